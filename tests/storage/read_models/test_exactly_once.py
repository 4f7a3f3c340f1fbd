"""Every event is taken in once: whoever is killed, and however many processes do it at once."""

from pathlib import Path
from random import Random

import pytest
from databases import each_database
from processes import Processes
from read_model_rows import rows_of

import cutbank
from cutbank import Block
from cutbank.adapters.storage.read_models.read_model_file import FeedPosition
from cutbank.adapters.storage.read_models.read_models import ReadModels

from .conftest import Opening, check_whole, talk

SEED, KILLS = 20261122, 25


@each_database
@pytest.mark.slow
def test_a_process_that_is_killed_while_it_catches_up_leaves_whole_batches(
    store: cutbank.SessionStore,
    database: str,
    opening: Opening,
    tmp_path: Path,
    run: Processes,
) -> None:
    dice = Random(SEED)  # noqa: S311 - nothing here is secret
    stopped_inside = 0

    for number in range(KILLS):
        talk(store, f"s{number}", 12)
        page, lines, lag = (dice.randint(1, most) for most in (9, 12, 100_000))
        run.killed_after(lines, lag, "catches_up", database, tmp_path / "killed.db", page)
        newest = store.events.recorder.max_notification_id()
        stopped_inside += any(0 < at < newest for at in opening("killed.db").positions.values())

    killed = opening("killed.db")
    killed.catch_up()
    check_whole(killed, opening)
    assert killed.rebuild_reason is None
    assert stopped_inside > 0


def test_a_process_that_is_overtaken_between_two_reads_of_the_positions_rebuilds_nothing(
    store: cutbank.SessionStore, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(store, "s", 3)
    models, other = opening(), opening()
    models.catch_up()
    read, looked_up = models.file.read_position, list[str]()

    def read_and_be_overtaken(feed: str) -> FeedPosition:
        found = read(feed)
        looked_up.append(feed)
        if looked_up.count("index") == 2:  # for the words, after the index itself
            monkeypatch.undo()
            talk(store, "s", 3, "loam")
            other.catch_up()
        return found

    monkeypatch.setattr(models.file, "read_position", read_and_be_overtaken)
    models.catch_up()

    assert (models.rebuild_reason, other.rebuild_reason) == (None, None)
    assert models.search("loam")
    check_whole(models, opening)


def test_a_search_index_that_does_not_fit_the_log_is_rebuilt_before_it_answers(
    store: cutbank.SessionStore, opening: Opening
) -> None:
    talk(store, "s", 3)
    models = opening()
    models.catch_up()
    models.file.fetch_rows("UPDATE feeds SET fingerprint = 'another' WHERE name = 'search'")

    found = models.search("silt")

    assert found
    assert models.rebuild_reason is not None
    check_whole(models, opening)


@each_database
@pytest.mark.slow
def test_processes_that_catch_up_at_once_take_nothing_in_twice(
    store: cutbank.SessionStore,
    database: str,
    opening: Opening,
    tmp_path: Path,
    run: Processes,
) -> None:
    talk(store, "s", 30)

    ended = run.run_together(4, "catches_up", database, tmp_path / "shared.db", 7)

    shared = opening("shared.db")
    assert shared.position == store.events.recorder.max_notification_id()
    check_whole(shared, opening)
    # Each batch was one process's own: seven events, of the index or of the words.
    assert len(ended.told("batch")) <= 2 * (shared.position // 7 + 2)


def test_what_another_process_took_in_meanwhile_is_not_taken_in_again(
    store: cutbank.SessionStore, models: ReadModels, opening: Opening
) -> None:
    talk(store, "s", 3)
    ahead = opening("models.db")
    begin = models.file.transaction

    def overtaken() -> object:
        ahead.catch_up()  # between the look whether there is news, and the lock
        return begin()

    models.file.transaction = overtaken  # type: ignore[assignment, method-assign]
    assert models.catch_up() == 0

    models.file.transaction = begin  # type: ignore[method-assign]
    check_whole(models, opening)


def test_a_batch_that_fails_leaves_nothing_of_itself(
    store: cutbank.SessionStore, models: ReadModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(store, "s", 3)
    models.catch_up()
    before = rows_of(models)
    store.session("s").append(Block.user("what is lost"))

    def full(*_: object) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(models.file, "save_position", full)
        with pytest.raises(OSError, match="no space"):
            models.catch_up()

    assert rows_of(models) == before
    assert models.catch_up() == 4  # a turn and its block, each for the index and for search

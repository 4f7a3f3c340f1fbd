"""Every event is taken in once: whoever is killed, and however many processes do it at once."""

import subprocess
import sys
from pathlib import Path

import pytest
from databases import each_database
from read_model_rows import rows_of

import cutbank
from cutbank import Block
from cutbank.adapters.storage.read_models.read_models import ReadModels

from .conftest import Opening, check_whole, talk

CHILD = """
import os, sys
import cutbank
from cutbank.adapters.storage.read_models.read_models import ReadModels
log, path, page = sys.argv[1:]
with cutbank.open(log) as store:
    models = ReadModels(store.events, path)
    models._index.page = models._words.page = int(page)
    os.write(1, b"begins\\n")
    models.catch_up(lambda done, total: os.write(1, b"batch\\n"))
    models.close()
"""


def child(log: str, path: Path, page: int) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", CHILD, log, str(path), str(page)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@each_database
@pytest.mark.slow
def test_processes_that_catch_up_at_once_take_nothing_in_twice(
    store: cutbank.SessionStore, database: str, opening: Opening, tmp_path: Path
) -> None:
    talk(store, "s", 30)

    processes = [child(database, tmp_path / "shared.db", 7) for _ in range(4)]
    said = [process.communicate()[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 4
    shared = opening("shared.db")
    assert shared.position == store.events.recorder.max_notification_id()
    check_whole(shared, opening)
    # Each batch was one process's own: seven events, of the index or of the words.
    assert sum(text.count("batch") for text in said) <= 2 * (shared.position // 7 + 2)


def test_what_another_process_took_in_meanwhile_is_not_taken_in_again(
    store: cutbank.SessionStore, models: ReadModels, opening: Opening
) -> None:
    talk(store, "s", 3)
    ahead = opening("models.db")
    place = models.file.read_position

    def overtaken(feed: str, db: object = None) -> object:
        found = place(feed, db)  # type: ignore[arg-type]
        if db is None:
            ahead.catch_up()  # between the look whether there is news, and the lock
        return found

    models.file.read_position = overtaken  # type: ignore[assignment, method-assign]
    assert models.catch_up() == 0

    models.file.read_position = place  # type: ignore[method-assign]
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

"""Every event is taken in once: whoever is killed, and however many processes do it at once."""

import pytest
from read_model_rows import rows_of

import cutbank
from cutbank import Block
from cutbank.adapters.storage.read_models.read_models import ReadModels

from .conftest import Opening, check_whole, talk


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

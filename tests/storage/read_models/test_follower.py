"""Read models that follow the log in a thread."""

import threading
from pathlib import Path
from time import monotonic, sleep

import pytest
from databases import each_database
from read_model_rows import table

import cutbank
from cutbank import Block, SessionStore

from .conftest import Opening, check_whole, talk

pytestmark = pytest.mark.usefixtures("no_thread_is_left")


def wait_for_follower(store: SessionStore) -> None:
    """Wait until a follower has taken in the whole log, and take in nothing here."""
    newest, models = store.events.recorder.max_notification_id(), store.read_models
    deadline = monotonic() + 60
    while models.position < newest:
        assert monotonic() < deadline, "the follower came to a stop"
        sleep(0.001)


def test_a_follower_takes_in_what_is_there_and_then_what_comes(store: SessionStore) -> None:
    store.follow_log().stop()
    talk(store, "before", 5)

    with store.follow_log():  # another goes on
        wait_for_follower(store)
        for number in range(5):
            store.session("live").append(Block.user(f"pebble {number}"))
            wait_for_follower(store)
            (row,) = table(store.read_models, "sessions", "key = 'live'")
            assert row["blocks"] == number + 1


def test_a_store_that_is_closed_ends_its_followers(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        follower = store.follow_log()
        store.session("s").append(Block.user("words"))

    assert not follower._thread.is_alive()


def test_what_goes_wrong_in_the_thread_is_said_when_it_is_stopped(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def broken(*_: object, **__: object) -> None:
        ended.set()
        raise ZeroDivisionError("the follower's own error")

    monkeypatch.setattr(store.read_models, "catch_up", broken)
    follower = store.follow_log()
    assert ended.wait(60)

    with pytest.raises(ZeroDivisionError, match="the follower's own error"):
        follower.stop()


@each_database
def test_followers_of_one_log_hear_of_each_other_s_events(
    store: SessionStore, opening: Opening, database: str
) -> None:
    with cutbank.open(database) as another, store.follow_log(), another.follow_log():
        for one, key in ((store, "mine"), (another, "theirs")):
            talk(one, key, 5)
            wait_for_follower(store)
            wait_for_follower(another)
    check_whole(store.read_models, opening)

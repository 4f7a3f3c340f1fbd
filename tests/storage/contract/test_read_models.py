"""The read models of either database take in its whole log, once, and stay beside it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from read_model_rows import rows_of

import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)
Opening = Callable[[str], ReadModels]


@pytest.fixture
def opening(store: SessionStore, tmp_path: Path) -> Iterator[Opening]:
    opened: list[ReadModels] = []

    def opens(name: str) -> ReadModels:
        opened.append(ReadModels(store.events, str(tmp_path / name), reckoned={"least_share": 0}))
        return opened[-1]

    yield opens
    for models in opened:
        models.close()


def tell(store: SessionStore, key: str) -> None:
    """A session with a fork, a large result, a compaction and what was taken back."""
    session = store.session(key)
    for turn in range(8):
        session.append(
            Block.user(f"clay and silt, asks {turn} " * 60),
            ToolCall(tool_call_id=f"{turn}", name="bash", arguments={"command": f"make {turn}"}),
            ToolResult(tool_call_id=f"{turn}", content="clay\n" * (3_000 if turn == 1 else 9)),
        )
    session.compact(POLICY, limit=4_000)
    session.fork(f"{key} fork").append(Block.user("a pebble of the fork"))
    session.retract(session.append(Block.note("a pebble that was taken back")).last)
    session.record_call(session.view(), call_id="c", model="m")


def test_what_is_taken_in_page_by_page_is_what_is_taken_in_at_once(
    store: SessionStore, opening: Opening
) -> None:
    followed = opening("followed.db")
    followed._index.page = followed._words.page = 7
    for key in ("one", "two"):
        tell(store, key)
        followed.catch_up()

    whole = opening("whole.db")
    whole.catch_up()

    assert rows_of(followed) == rows_of(whole)
    assert followed.position == store.events.recorder.max_notification_id()
    assert followed.rebuild_reason is None
    assert len(followed.search("pebble")) == 4
    assert [one.session for one in followed.search("pebble", session="one fork")] == ["one fork"]


def test_sessions_at_rest_are_due_whoever_rests_longest_first(
    store: SessionStore, opening: Opening
) -> None:
    models = opening("models.db")
    tell(store, "one")
    models.catch_up()
    due = DueSessionIndex(models)
    at = due.find_next_due(store.events.clock())
    assert at is not None
    later = at + timedelta(hours=1)

    assert [one.key for one in due.find_due(at, 5)] == ["one fork"]
    assert [one.key for one in due.find_due(later, 1)] == ["one fork"]
    assert [one.key for one in due.find_due(later, 5)] == ["one fork", "one"]
    assert (due.count_due(at), due.count_due(later)) == (1, 2)
    assert [due.find_model(one) for one in due.find_due(later, 5)] == [None, "m"]


def test_a_file_of_another_log_is_made_anew(
    store: SessionStore, opening: Opening, tmp_path: Path
) -> None:
    with cutbank.open(tmp_path / "another.db") as another:
        another.session("another").append(Block.user("a pebble"), Block.user("more"))
        other = ReadModels(another.events, str(tmp_path / "models.db"))
        other.catch_up()
        other.close()
    tell(store, "one")

    models, whole = opening("models.db"), opening("whole.db")
    models.catch_up()
    whole.catch_up()

    assert models.rebuild_reason is not None
    assert "another state of the log" in models.rebuild_reason
    assert rows_of(models) == rows_of(whole)


def test_a_follower_hears_of_other_stores(store: SessionStore, database: str) -> None:
    with store.follow_log(), cutbank.open(database) as another:
        for number in range(3):
            another.session("theirs").append(Block.user(f"pebble {number}"))
            newest = another.events.recorder.max_notification_id()
            store.read_models.wait_for_follower(newest, timeout=60)

    assert len(store.search("pebble")) == 3

"""The read models of either database take in its whole log, once, and stay beside it."""

from contextlib import closing
from datetime import timedelta
from pathlib import Path

from read_model_rows import rows_of

from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom

POLICY = ReserveHeadroom(reserve_tokens=500, keep_tokens=600)


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
    store: SessionStore, tmp_path: Path
) -> None:
    followed = store.read_models
    followed._index.page = followed._words.page = 7
    for key in ("one", "two"):
        tell(store, key)
        followed.catch_up()

    with closing(ReadModels(store.events, str(tmp_path / "whole.db"))) as whole:
        whole.catch_up()
        assert rows_of(followed) == rows_of(whole)
    assert followed.position == store.events.recorder.max_notification_id()
    assert followed.rebuild_reason is None
    assert len(followed.search("pebble")) == 4
    assert [one.session for one in followed.search("pebble", session="one fork")] == ["one fork"]


def test_sessions_at_rest_are_due_whoever_rests_longest_first(store: SessionStore) -> None:
    store.read_models.change_settings(least_share=0)
    tell(store, "one")
    store.read_models.catch_up()
    due = DueSessionIndex(store.read_models)
    at = due.find_next_due(store.events.clock())
    assert at is not None
    later = at + timedelta(hours=1)

    assert [one.key for one in due.find_due(at, 5)] == ["one fork"]
    assert [one.key for one in due.find_due(later, 1)] == ["one fork"]
    assert [one.key for one in due.find_due(later, 5)] == ["one fork", "one"]
    assert (due.count_due(at), due.count_due(later)) == (1, 2)
    assert [due.find_model(one) for one in due.find_due(later, 5)] == [None, "m"]

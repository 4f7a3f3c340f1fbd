"""What others lost or stored twice on SQLite; here a failure leaves nothing behind."""

import sqlite3
from collections.abc import Iterator
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError
from faulty import check_log, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_stores import store_of
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.errors import ConflictError


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SessionStore]]:
    """Three stores on one file, as three processes would have them."""
    path = tmp_path_factory.mktemp("stores") / "log.db"
    opened = [cutbank.open(path, synchronous="NORMAL") for _ in range(3)]
    yield opened
    for store in opened:
        check_log(store)
        store.close()


@given(
    turns=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["say", "call", "answer", "expect", "key"])),
        min_size=2,
        max_size=25,
    )
)
@settings(max_examples=20)
def test_whoever_appends_in_turn_nothing_is_lost_and_nothing_is_twice(
    stores: list[SessionStore], turns: list[tuple[int, str]]
) -> None:
    key = str(uuid4())
    sessions = [store.session(key) for store in stores]
    said: list[str] = []
    waiting: list[str] = []
    seen = [session.position for session in sessions]

    for number, (who, what) in enumerate(turns):
        session, text, how = sessions[who], f"text {number}", {}
        block: AnyBlock = Block.user(text)
        match what:
            case "call":
                block = ToolCall(tool_call_id=text, name="tool", arguments=text)
                waiting.append(text)
            case "answer" if waiting:
                # Another process made the call, and this one answers it.
                block = ToolResult(tool_call_id=waiting.pop(0), content=text)
            case "expect":
                how = {"expect": session.position}
                if seen[who] != session.position:
                    with pytest.raises(ConflictError):
                        session.append(Block.user("refused"), expect=seen[who])
            case "key":
                how = {"key": text}
        done = session.append(block, **how)  # type: ignore[arg-type]
        said.append(text)
        if what == "key":
            again = sessions[who - 1].append(Block.user("never stored"), key=text)
            assert (again.first, again.last) == (done.first, done.last)
        seen[who] = done.last

    for session in sessions:
        assert texts(session) == said
        assert session.log.state.open_calls.keys() == set(waiting)


def test_a_notification_id_is_never_used_again(session: StoredSession) -> None:
    """Whoever followed the log past an id would never see an event that came to stand there."""
    session.append(Block.user("first"))
    recorder = sqlite_recorder(store_of(session))
    newest = recorder.max_notification_id()
    writer = recorder.datastore.writer

    # The newest id is the only one that SQLite would give again, and it cannot be freed.
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        writer.execute("DELETE FROM stored_events WHERE notification_id = ?", (newest,))
    with pytest.raises(IntegrityError):
        recorder.insert_events(recorder.select_events(session.log.id))  # is refused, and uses no id
    writer.execute("VACUUM")
    store_of(session).session("another")

    assert recorder.max_notification_id() == newest + 1

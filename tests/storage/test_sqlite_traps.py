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
from cutbank.domain.errors import ConflictError


def test_a_decision_that_breaks_off_leaves_no_phantom(session: StoredSession) -> None:
    for broken in (ToolResult(tool_call_id="nobody"), "not a block", None):
        with pytest.raises(Exception, match=r"nobody|kind"):
            session.append(Block.user("phantom"), broken)  # type: ignore[arg-type]

    session.append(Block.user("real"))

    assert texts(session) == ["real"]
    check_log(store_of(session))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SessionStore]]:
    """Three stores on one file, as three processes would have them."""
    path = tmp_path_factory.mktemp("stores") / "log.db"
    opened = [cutbank.open(path, synchronous="NORMAL") for _ in range(3)]
    yield opened
    for store in opened:
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
        session, text = sessions[who], f"text {number}"
        match what:
            case "call":
                done = session.append(ToolCall(tool_call_id=text, name="tool", arguments=text))
                waiting.append(text)
                said.append(text)
            case "answer" if waiting:
                # Another process made the call, and this one answers it.
                done = session.append(ToolResult(tool_call_id=waiting.pop(0), content=text))
                said.append(text)
            case "expect":
                newest = session.position
                if seen[who] != newest:
                    with pytest.raises(ConflictError):
                        session.append(Block.user("refused"), expect=seen[who])
                done = session.append(Block.user(text), expect=newest)
                said.append(text)
            case _:
                done = session.append(Block.user(text), key=text if what == "key" else None)
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


def test_states_equal_the_log_after_all_that(stores: list[SessionStore]) -> None:
    for store in stores:
        check_log(store)

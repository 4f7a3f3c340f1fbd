"""What others lost or stored twice on SQLite; here a failure leaves nothing behind."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError
from faulty import check_log, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.domain.errors import ConflictError
from cutbank.domain.session import Session


@pytest.fixture
def engine() -> str:
    return "sqlite"


# Phantoms


def test_a_conflict_leaves_no_phantom_in_a_cached_aggregate(tmp_path: Path) -> None:
    """In eventsourcing's own cache the refused event stays, and the next save succeeds."""
    env = {"SQLITE_DBNAME": str(tmp_path / "log.db")}
    with EventStore(env) as one, EventStore(env) as two:
        one.save(Session.open("space", "key", clock=one.clock))
        mine, stale = one.session("space", "key"), two.session("space", "key")
        assert mine is not None
        assert stale is not None
        mine.append(Block.user("stored"))
        one.save(mine)

        stale.append(Block.user("refused"))
        with pytest.raises(IntegrityError):
            two.save(stale)

        again = two.session("space", "key")
        assert again is not None
        assert again is not stale
        assert (again.version, again.state) == (mine.version, mine.state)
        again.append(Block.user("stored as well"))
        two.save(again)
        check_log(SessionStore(one, "one"))
        check_log(SessionStore(two, "two"))
        log = StoredSession(SessionStore(one, "one"), "space", "key")
        assert texts(log) == ["stored", "stored as well"]


def test_a_decision_that_breaks_off_leaves_no_phantom(session: StoredSession) -> None:
    for broken in (ToolResult(tool_call_id="nobody"), "not a block", None):
        with pytest.raises(Exception, match=r"nobody|kind"):
            session.append(Block.user("phantom"), broken)  # type: ignore[arg-type]

    session.append(Block.user("real"))

    assert texts(session) == ["real"]
    check_log(session.store)


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
@settings(max_examples=40)
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
        assert session.state.open_calls.keys() == set(waiting)


def test_states_equal_the_log_after_all_that(stores: list[SessionStore]) -> None:
    for store in stores:
        check_log(store)


# Ids, and what is never changed


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stored_events",
        "DELETE FROM stored_events WHERE notification_id = 1",
        "UPDATE stored_events SET state = x'7b7d'",
        "UPDATE stored_events SET notification_id = notification_id + 100",
    ],
)
def test_an_event_is_never_changed_or_deleted(session: StoredSession, statement: str) -> None:
    session.append(Block.user("stays"))
    writer = sqlite_recorder(session.store).datastore.writer

    with pytest.raises(sqlite3.IntegrityError, match="the log is immutable"):
        writer.execute(statement)

    assert texts(session) == ["stays"]
    check_log(session.store)


def test_a_notification_id_is_never_used_again(session: StoredSession) -> None:
    """Whoever followed the log past an id would never see an event that came to stand there."""
    session.append(Block.user("first"))
    recorder = sqlite_recorder(session.store)
    newest = recorder.max_notification_id()
    writer = recorder.datastore.writer

    # The newest id is the only one that SQLite would give again, and it cannot be freed.
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        writer.execute("DELETE FROM stored_events WHERE notification_id = ?", (newest,))
    with pytest.raises(IntegrityError):
        recorder.insert_events(recorder.select_events(session.id))  # is refused, and uses no id
    writer.execute("VACUUM")
    session.store.session("another")

    assert recorder.max_notification_id() == newest + 1


# Transactions


def test_several_aggregates_are_saved_together_or_not_at_all(tmp_path: Path) -> None:
    env = {"SQLITE_DBNAME": str(tmp_path / "log.db")}
    with EventStore(env) as one, EventStore(env) as two:
        for key in ("first", "second"):
            one.save(Session.open("space", key, clock=one.clock))
        first, second = one.session("space", "first"), one.session("space", "second")
        other = two.session("space", "second")
        assert first
        assert second
        assert other
        other.append(Block.user("somebody was faster"))
        two.save(other)
        ids = one.recorder.max_notification_id()

        for aggregate in (first, second):
            aggregate.append(Block.user("together"))
        opened = Session.open("space", "third", clock=one.clock)
        with pytest.raises(IntegrityError):
            one.save(opened, first, second)

        assert one.recorder.max_notification_id() == ids
        assert one.session("space", "third") is None
        assert [stream.session for stream in one.recorder.select_streams()] == ["first", "second"]
        check_log(SessionStore(one, "one"))

        again = [one.session("space", "first"), one.session("space", "second")]
        for session in again:
            assert session
            session.append(Block.user("together"))
        stored = one.save(*again, Session.open("space", "third", clock=one.clock))
        # A turn and a block, a block in the turn that the other began, and an opening.
        assert [number - ids for number in stored] == [1, 2, 3, 4]
        check_log(SessionStore(one, "one"))


# What verify sees


def test_verify_misses_no_stream_that_the_catalog_does_not_name(store: SessionStore) -> None:
    session = store.session("session")
    session.append(Block.user("words"))
    sqlite_recorder(store).datastore.writer.execute("DELETE FROM streams")

    verdict = verify(store)

    assert [violation.what for violation in verdict.violations] == ["1 streams are in no catalog"]


def test_verify_sees_a_state_that_was_changed(store: SessionStore) -> None:
    session = store.session("session")
    session.append(Block.user("words"))
    writer = sqlite_recorder(store).datastore.writer
    writer.execute("DROP TRIGGER stored_events_are_immutable")
    writer.execute("UPDATE stored_events SET carried = '{}' WHERE originator_version = 3")

    verdict = verify(store)

    assert [(violation.what, violation.position) for violation in verdict.violations] == [
        ("the state beside it was changed", 3)
    ]

"""What a server may do to a log: refuse, restart, lose an answer. Nothing is lost or twice."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from string import ascii_letters
from threading import Barrier
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from databases import asked
from eventsourcing.persistence import OperationalError
from faulty import one_line, texts
from opened_stores import store_of
from postgres_server import Server
from psycopg.errors import DeadlockDetected, SerializationFailure

import cutbank
from cutbank import Block, CutbankError, StorageError, StoredSession, verify
from cutbank.adapters.storage.databases import postgres_datastore, postgres_recorder
from cutbank.adapters.storage.databases.postgres_datastore import (
    ConnectionLostError,
    PostgresLogDatastore,
)
from cutbank.adapters.storage.databases.postgres_recorder import PostgresRecorder
from cutbank.adapters.storage.event_log import storage_errors


@pytest.fixture
def engine() -> str:
    return "postgres"


# Answers that never come


Answer = list[tuple[Any, ...]]
LOST = ConnectionLostError("the answer was lost")


def at_appends(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Callable[[], Answer], PostgresLogDatastore], Answer],
) -> None:
    """Let a test answer the statements that append; what it gets runs the statement."""
    real = PostgresLogDatastore.execute

    def execute(self: PostgresLogDatastore, query: Any, parameters: Any = ()) -> Answer:
        run = partial(real, self, query, parameters)
        is_append = isinstance(query, bytes) and b"INSERT INTO stored_events" in query
        return answer(run, self) if is_append else run()

    monkeypatch.setattr(PostgresLogDatastore, "execute", execute)


def losing_answers(monkeypatch: pytest.MonkeyPatch, *, after: bool, times: int = 1) -> list[int]:
    """The server goes away at the next writes, before or after it has done them."""
    lost: list[int] = []

    def answer(run: Callable[[], Answer], datastore: PostgresLogDatastore) -> Answer:
        if len(lost) >= times:
            return run()
        lost.append(1)
        if after:
            run()
        connection = datastore.connection
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert connection.closed
        raise LOST

    at_appends(monkeypatch, answer)
    return lost


@pytest.mark.parametrize(("after", "keyed"), [(True, True), (True, False), (False, True)])
def test_an_append_whose_answer_was_lost_is_stored_once(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch, *, after: bool, keyed: bool
) -> None:
    before = session.append(Block.user("before")).last
    lost = losing_answers(monkeypatch, after=after, times=2)

    done = session.append(
        Block.user("a"), Block.assistant("b" * 20_000), key="key" if keyed else None
    )

    assert lost
    assert not done.is_repeated
    assert (done.first, done.last) == (before + 1, before + 2)
    assert [text[:6] for text in texts(session)] == ["before", "a", "bbbbbb"]
    assert verify(store_of(session)).is_ok


def test_an_append_that_the_server_commits_late_is_stored_once(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not there yet when it is looked for, and its place is taken by itself afterwards."""
    losing_answers(monkeypatch, after=True)
    own_ids, looks = PostgresRecorder._find_own_ids, list[int]()

    def late(self: PostgresRecorder, events: list[tuple[Any, ...]]) -> list[int]:
        looks.append(1)
        return own_ids(self, events) if len(looks) > 1 else []

    monkeypatch.setattr(PostgresRecorder, "_find_own_ids", late)

    session.append(Block.user("a"))

    assert len(looks) == 2
    assert texts(session) == ["a"]


def test_an_append_that_was_lost_and_overtaken_is_a_conflict(
    session: StoredSession, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = session.append(Block.user("before")).last
    lost: list[int] = []

    def overtaken(run: Callable[[], Answer], _: PostgresLogDatastore) -> Answer:
        if lost:
            return run()
        lost.append(1)
        with cutbank.open(database) as other:
            other.session("a session").append(Block.user("somebody else"))
        raise LOST

    at_appends(monkeypatch, overtaken)

    with pytest.raises(CutbankError):
        # `expect` is met when it is looked at, and no more when it is stored.
        session.append(Block.user("mine"), expect=at)

    assert texts(session) == ["before", "somebody else"]


@pytest.mark.parametrize("kind", [DeadlockDetected, SerializationFailure])
def test_an_append_that_was_undone_for_others_is_made_anew(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch, kind: type[psycopg.Error]
) -> None:
    undone: list[int] = []

    def contended(run: Callable[[], Answer], _: PostgresLogDatastore) -> Answer:
        undone.append(1)
        if len(undone) < 4:
            raise OperationalError(kind("not you"))
        return run()

    at_appends(monkeypatch, contended)

    session.append(Block.user("a"))

    assert len(undone) == 4
    assert texts(session) == ["a"]


def test_a_sequence_that_was_set_back_is_no_conflict(session: StoredSession) -> None:
    """Whoever decides again on a conflict would do so for ever."""
    session.append(Block.user("a"))
    asked(
        store_of(session),
        "SELECT setval('stored_events_notification_id_seq', 1, false)",
    )

    with one_line("stored_events_pkey"):
        session.append(Block.user("b"))


# Servers that stop


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    with closing(Server()) as server:
        yield server


@pytest.fixture
def session_there(own_server: Server) -> Iterator[StoredSession]:
    with cutbank.open(f"{own_server.address}&schema=s{uuid4().hex}") as store:
        session = store.session("s")
        session.append(Block.user("before"))
        yield session


def test_a_server_that_restarts_is_found_again(
    own_server: Server, session_there: StoredSession
) -> None:
    store = store_of(session_there)
    with store.events.recorder.subscribe() as subscription:
        assert [next(subscription).id for _ in range(3)] == [1, 2, 3]
        own_server.tell("fast")
        own_server.tell("start")

        assert texts(session_there) == ["before"]
        own_server.tell("immediate")
        own_server.tell("start")
        session_there.append(Block.user("after"))

        assert texts(session_there) == ["before", "after"]
        assert next(subscription).topic == "cutbank:BlockAppended"
    assert verify(store).is_ok


def test_a_server_that_stays_away_is_an_error_of_one_line(
    own_server: Server, session_there: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_datastore, "RECONNECT_SECONDS", 0.2)
    own_server.tell("fast")

    with one_line("cannot be reached"):
        session_there.append(Block.user("lost"))
    with one_line("cannot be reached"):
        session_there.view()

    own_server.tell("start")
    session_there.append(Block.user("after"))
    assert texts(session_there) == ["before", "after"]


# What a server may not do


def test_a_name_that_cannot_be_looked_up_is_refused(session: StoredSession) -> None:
    """An index holds up to a third of a page; what can be compressed may be longer."""
    name = "".join(Random(1).choices(ascii_letters, k=5_000))  # noqa: S311

    with one_line("keep names below 2,000 bytes"):
        session.append(Block.user("a"), key=name)

    assert session.append(Block.user("b"), key="n" * 2_000).last == session.position


def test_what_a_server_says_is_said_plainly() -> None:
    for said, words in (
        ('could not extend file "base/5/1": No space left on device', "disk is full"),
        ("terminating connection due to administrator command", "went away"),
        ("FATAL:  sorry, too many clients already", "no connection left"),
        ("invalid page in block 7 of relation base/5/16384", "is damaged"),
        ("cannot execute INSERT in a read-only transaction", "is read-only"),
    ):
        with one_line(words), storage_errors.translate_storage_errors("postgresql://db/agents"):
            raise OperationalError(psycopg.OperationalError(f"{said}\nDETAIL:  more"))


# Copies


def test_a_copy_is_of_one_moment_in_all_its_tables(
    session: StoredSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(Block.user("before"))
    copy_table, copied = postgres_recorder._copy_table, list[str]()

    def overtaken(*arguments: Any) -> None:
        copied.append(arguments[2])
        copy_table(*arguments)
        with ThreadPoolExecutor(1) as threads:  # which has a connection of its own
            threads.submit(session.append, Block.user("later"), key=f"after {arguments[2]}")

    monkeypatch.setattr(postgres_recorder, "_copy_table", overtaken)

    store_of(session).backup(tmp_path / "copy.db")

    with cutbank.open(tmp_path / "copy.db") as found:
        again = found.session("a session", create=False)
        assert texts(again) == ["before"]
        assert not again.append(Block.user("free"), key=f"after {copied[0]}").is_repeated


def test_a_copy_that_fails_leaves_nothing(
    session: StoredSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(Block.user("a"))
    monkeypatch.setattr(
        "cutbank.adapters.storage.databases.postgres_recorder.COPIED_TABLES",
        {"topics": "id, nothing"},
    )

    with pytest.raises(StorageError):
        store_of(session).backup(tmp_path / "copy.db")

    assert list(tmp_path.iterdir()) == []


def cut_off(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert connection.closed


@pytest.mark.parametrize("after", [True, False])
def test_a_batch_whose_commit_was_not_answered_is_stored_or_reported(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    commit = psycopg.Connection.commit

    def commit_without_answer(self: psycopg.Connection[Any]) -> None:
        monkeypatch.undo()
        if after:
            commit(self)
        cut_off(self)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "commit", commit_without_answer)

    def write() -> None:
        with store_of(session).batch():
            session.append(Block.user("a"))
            session.records.put("state", 1)

    if after:
        write()
    else:
        with one_line("went away in mid-transaction"):
            write()

    assert texts(session) == (["a"] if after else [])
    assert (session.records.get("state") is not None) == after
    session.append(Block.user("and on"))
    assert verify(store_of(session)).is_ok


def test_a_connection_that_is_lost_in_a_batch_undoes_all_of_it(
    session: StoredSession,
) -> None:
    store = store_of(session)
    recorder = store.events.recorder
    assert isinstance(recorder, PostgresRecorder)

    def write() -> None:
        with store.batch():
            session.append(Block.user("undone"))
            cut_off(recorder.datastore.connection)
            for _ in range(2):  # an error that is caught, and what would be stored without a batch
                with one_line("went away in mid-transaction"):
                    session.append(Block.user("undone as well"))

    with one_line("went away in mid-transaction"):
        write()

    assert texts(session) == []
    session.append(Block.user("and on"))
    assert verify(store).is_ok


def test_of_two_batches_that_wait_for_each_other_one_is_refused(
    session: StoredSession, database: str
) -> None:
    together = Barrier(2, timeout=60)
    session.append(Block.user("before"))
    session.fork("b")

    def write(first: str, second: str) -> str:
        with cutbank.open(database) as store:
            try:
                with store.batch():
                    store.session(first).append(Block.user("stored"))
                    together.wait()
                    store.session(second).append(Block.user("stored"))
            except StorageError as refused:
                return str(refused)
        return "stored"

    with ThreadPoolExecutor(2) as threads:
        said = sorted(threads.map(write, ("a session", "b"), ("b", "a session")), key=len)

    assert said[0] == "stored"
    assert "in another order: run yours again" in said[1]
    assert texts(session) == ["before", "stored"]
    assert verify(store_of(session)).is_ok

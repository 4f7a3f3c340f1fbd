"""Threads that append at once share a commit, and nothing of one becomes another's."""

import os
import sqlite3
from collections import deque
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StorageError, StoredSession, verify

THREADS = 8


class Gate:
    """The writer's connection, which waits at the first commit until it is let through."""

    def __init__(self, connection: sqlite3.Connection, interrupted: str) -> None:
        self._connection = connection
        self._interrupted = interrupted
        self.reached, self.opened = Event(), Event()
        self.commits = 0

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        commits = statement.startswith("INSERT INTO stored_events") or statement == "COMMIT"
        if commits:
            self.commits += 1
            self.reached.set()
            assert self.opened.wait(60)
        if commits and self.commits == 2 and self._interrupted == "before":
            raise KeyboardInterrupt
        done = self._connection.execute(statement, *parameters)
        if commits and self.commits == 2 and self._interrupted == "after":
            raise KeyboardInterrupt
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def sessions_of(store: SessionStore) -> list[StoredSession]:
    return [store.session(f"session {number}", create=False) for number in range(THREADS)]


def appended_at_once(
    store: SessionStore, *, interrupted: str = "never", too_large: int | None = None
) -> tuple[int, dict[int, BaseException]]:
    """Let session 0 reach its commit, the others queue behind it; returns how many commits."""
    sessions = sessions_of(store)
    recorder = sqlite_recorder(store)
    gate: Any = Gate(recorder.datastore.writer, interrupted)
    recorder.datastore.writer = gate
    recorder.group_commit.waiting = queue = Queue(THREADS - 1)
    failed: dict[int, BaseException] = {}

    def append(number: int) -> None:
        text = os.urandom(150_000).hex() if number == too_large else f"said by {number}"
        try:
            assert sessions[number].append(Block.note(text)).last == 4
        except (StorageError, KeyboardInterrupt) as error:
            failed[number] = error

    threads = [Thread(target=append, args=(number,)) for number in range(THREADS)]
    try:
        threads[0].start()
        assert gate.reached.wait(60)
        for thread in threads[1:]:
            thread.start()
        assert queue.is_full.wait(60)
    finally:
        gate.opened.set()
        for thread in threads:
            thread.join(60)
        recorder.datastore.writer = gate._connection
    return gate.commits, failed


class Queue(deque[Any]):
    """The writes that wait, which tells when they are `number`."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.is_full = number, Event()

    def append(self, write: Any) -> None:
        super().append(write)
        if len(self) == self.number:
            self.is_full.set()


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with cutbank.open(tmp_path / "log.db") as store:
        for number in range(THREADS):
            store.session(f"session {number}").append(Block.user("first"))
        yield store


def test_threads_that_wait_for_one_commit_share_the_next(store: SessionStore) -> None:
    commits, failed = appended_at_once(store)

    assert (commits, failed) == (2, {})
    for number, session in enumerate(sessions_of(store)):
        assert [found.block.text for found in session.recall(4)] == [f"said by {number}"]
    assert not verify(store).violations


def test_what_is_refused_takes_nothing_down_with_it(store: SessionStore) -> None:
    """One of those that share a commit cannot be stored: the others are, all the same."""
    writer = sqlite_recorder(store).datastore.writer
    usual = writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)

    _, failed = appended_at_once(store, too_large=3)

    assert set(failed) == {3}
    sessions = sessions_of(store)
    assert [session.position for session in sessions] == [4, 4, 4, 3, 4, 4, 4, 4]
    writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
    sessions[3].append(Block.note("shorter"))
    assert not verify(store).violations


@pytest.mark.parametrize("interrupted", ["before", "after"])
def test_who_is_interrupted_interrupts_nobody_else(store: SessionStore, interrupted: str) -> None:
    """Ctrl-C may reach the thread that commits for all, just before its commit or just after."""
    _, failed = appended_at_once(store, interrupted=interrupted)

    ((leader, error),) = failed.items()
    assert isinstance(error, KeyboardInterrupt)
    for number, session in enumerate(sessions_of(store)):
        stored = number != leader or interrupted == "after"
        assert session.position == (4 if stored else 3)
        session.append(Block.note("later"))
    assert not verify(store).violations


def test_a_batch_that_sqlite_has_undone_stores_nothing_more(store: SessionStore) -> None:
    """As it does when the disk is full, whether or not the error is caught in the batch."""
    session = store.session("a")

    def write() -> None:
        with store.batch():
            session.append(Block.user("undone"))
            sqlite_recorder(store).datastore.writer.execute("ROLLBACK")
            with pytest.raises(StorageError, match="the batch was undone after an error"):
                session.append(Block.user("nor this"))

    with pytest.raises(StorageError):
        write()

    assert session.recall(search="") == []
    session.append(Block.user("and on"))
    assert verify(store).is_ok


def test_an_error_of_another_database_leaves_a_batch_as_it_is(store: SessionStore) -> None:
    def write() -> None:
        with store.batch():
            raise sqlite3.IntegrityError("of a database that is the caller's own")

    with pytest.raises(sqlite3.IntegrityError, match="the caller's own"):
        write()

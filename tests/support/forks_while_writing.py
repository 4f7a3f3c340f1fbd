"""Forks children of a process that has threads: run with a check and a database's address."""

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from multiprocessing import get_context
from threading import Event, Thread
from time import monotonic

from faulty import check_log, texts
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.storage.databases.postgres_recorder import PostgresRecorder
from cutbank.adapters.storage.process_forks import LOCK_TIMEOUT_S

WRITERS = 2
CHILDREN = 3
WAITED_S = 30.0


@contextmanager
def written_to(session: StoredSession) -> Iterator[list[str]]:
    """Threads append to the session, look at it and search, until the block is left."""
    said, ends = list[str](), Event()

    def write(name: int) -> None:
        for number in count(1):
            words = f"thread {name} says {number}"
            session.append(Block.user(words))
            said.append(words)
            if number % 5 == 0:
                session.view()
                store_of(session).search("says", limit=1)
            if ends.is_set():
                return

    with ThreadPoolExecutor(WRITERS) as threads:
        writing = [threads.submit(write, name) for name in range(WRITERS)]
        try:
            yield said
        finally:
            ends.set()
        for writer in writing:
            writer.result()


def child(session: StoredSession, words: str) -> None:
    session.append(Block.user(words))
    assert words in {entry.text for entry in session.view().entries}
    assert store_of(session).search(f'"{words}"')
    store_of(session).close()


def check_forks(database: str) -> None:
    with cutbank.open(database, synchronous="NORMAL") as store:
        session = store.session("session")
        forking = get_context("fork")
        with written_to(session) as said:
            for number in range(CHILDREN):
                words = f"child number{number}"
                process = forking.Process(target=child, args=(session, words))
                began = monotonic()
                process.start()
                process.join(WAITED_S)
                took = monotonic() - began
                process.kill()
                assert (process.exitcode, took < WAITED_S / 3) == (0, True)
                said.append(words)

        assert Counter(texts(session)) == Counter(said)
        check_log(store)
        session.append(Block.user("and so does the parent"))
    with cutbank.open(database) as store:
        assert texts(store.session("session", create=False))[-1] == "and so does the parent"


def check_waiting_thread(database: str) -> None:
    """Fork a child while a thread waits, and check that the thread keeps its server session."""
    asked, forked = Event(), Event()
    sessions: list[int] = []
    with cutbank.open(database) as store:
        recorder = store.events.recorder
        assert isinstance(recorder, PostgresRecorder)

        def ask() -> None:
            for event in (asked, None):
                sessions.append(recorder.datastore.execute("SELECT pg_backend_pid()")[0][0])
                if event:
                    event.set()
                    forked.wait()

        thread = Thread(target=ask)
        thread.start()
        asked.wait()
        process = get_context("fork").Process(target=gc.collect)
        process.start()
        process.join()
        forked.set()
        thread.join()
    assert len(sessions) == 2
    assert sessions[0] == sessions[1]


def check_closed_store(database: str) -> None:
    """Fork a child of a process that still refers to a store that it closed."""
    closed = cutbank.open(database)
    closed.session("closed").append(Block.user("words"))
    closed.close()
    with cutbank.open(database) as store:
        session = store.session("session")
        session.append(Block.user("from the parent"))
        process = get_context("fork").Process(target=child, args=(session, "from a child"))
        began = monotonic()
        process.start()
        # Both stores use one lock, which the fork takes once and does not wait for again.
        assert monotonic() - began < LOCK_TIMEOUT_S
        process.join(WAITED_S)
        process.kill()
        assert process.exitcode == 0
    assert closed


if __name__ == "__main__":
    checks = {
        "forks": check_forks,
        "waiting": check_waiting_thread,
        "closed": check_closed_store,
    }
    checks[sys.argv[1]](sys.argv[2])

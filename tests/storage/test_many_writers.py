"""Threads that share a store, or one session, lose nothing and never fail."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as Signal

import pytest
from faulty import texts
from opened_stores import store_of
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession


@pytest.mark.usefixtures("often_interrupted")
@pytest.mark.parametrize("where", ["memory", "one session object"])
def test_readers_in_other_threads_see_whole_appends(tmp_path: Path, where: str) -> None:
    finished = Signal()
    address = ":memory:" if where == "memory" else tmp_path / "log.db"

    def read(store: SessionStore, session: StoredSession) -> None:
        while not finished.is_set():
            view = (store.session("session") if where == "memory" else session).view()
            # Each append is two blocks.
            assert [entry.text for entry in view.entries] == [
                f"{number // 2}" for number in range(len(view.entries))
            ]
            assert len(view.entries) % 2 == 0
            # What a view says that it holds is what it holds.
            if view.entries:
                assert view.entries[-1].position == view.coordinate.position

    with cutbank.open(address, synchronous="NORMAL") as store, ThreadPoolExecutor(4) as threads:
        session = store.session("session")
        readers = [threads.submit(read, store, session) for _ in range(4)]
        try:
            for number in range(60):
                session.append(Block.user(f"{number}"), Block.assistant(f"{number}"))
        finally:
            finished.set()

        for reader in readers:
            reader.result()


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    """Threads take turns after every few instructions, so that what can go wrong does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_a_thread_takes_its_connection_along_when_it_ends(session: StoredSession) -> None:
    session.append(Block.user("words"))
    readers = sqlite_recorder(store_of(session)).datastore._readers
    before = len(readers)

    for _ in range(30):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(texts, session).result() == ["words"]

    assert len(readers) == before

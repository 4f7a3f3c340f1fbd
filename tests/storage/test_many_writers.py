"""Threads that share a store, or one session, lose nothing and never fail."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as Signal
from threading import Thread

import pytest
from faulty import texts
from opened_stores import store_of
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession


def test_readers_of_a_store_in_memory_see_whole_appends() -> None:
    finished = Signal()

    def read(store: SessionStore) -> int:
        looks = 0
        while not finished.is_set():
            session = store.session("session")
            said = [entry.text for entry in session.view().entries]
            # Each append is two blocks.
            assert said == [f"{number // 2}" for number in range(len(said))]
            assert len(said) % 2 == 0
            looks += 1
        return looks

    with cutbank.open(":memory:", synchronous="NORMAL") as store, ThreadPoolExecutor(4) as threads:
        session = store.session("session")
        readers = [threads.submit(read, store) for _ in range(4)]
        try:
            for number in range(60):
                session.append(Block.user(f"{number}"), Block.assistant(f"{number}"))
        finally:
            finished.set()

        assert all(reader.result() > 0 for reader in readers)


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    """Threads take turns after every few instructions, so that what can go wrong does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_interrupted")
def test_one_session_object_may_be_viewed_from_many_threads(tmp_path: Path) -> None:
    finished = Signal()

    def read(session: StoredSession) -> None:
        while not finished.is_set():
            view = session.view()
            assert [entry.text for entry in view.entries] == [
                f"{number}" for number in range(len(view.entries))
            ]
            # What a view says that it holds is what it holds.
            if view.entries:
                assert view.entries[-1].position == view.coordinate.position

    with (
        cutbank.open(tmp_path / "log.db", synchronous="NORMAL") as store,
        ThreadPoolExecutor(4) as threads,
    ):
        session = store.session("session")
        reading = [threads.submit(read, session) for _ in range(4)]
        try:
            for number in range(150):
                session.append(Block.user(f"{number}"))
        finally:
            finished.set()

        for one in reading:
            one.result()


def test_a_thread_takes_its_connection_along_when_it_ends(session: StoredSession) -> None:
    session.append(Block.user("words"))
    readers = sqlite_recorder(store_of(session)).datastore._readers
    before = len(readers)

    for _ in range(30):
        seen: list[str] = []
        thread = Thread(target=lambda seen=seen: seen.extend(texts(session)))
        thread.start()
        thread.join()
        assert seen == ["words"]

    assert len(readers) == before

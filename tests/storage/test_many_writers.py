"""Threads that share a store, and stores that share a file, lose nothing and never fail."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread
from threading import Event as Signal
from uuid import uuid4

import pytest
from faulty import check_log, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_stores import store_of
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, ConflictError, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.storage.databases.sqlite_datastore import MAX_IDLE
from cutbank.domain.blocks import AnyBlock


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


def test_a_thread_leaves_its_connection_to_the_next(session: StoredSession) -> None:
    session.append(Block.user("words"))
    datastore = sqlite_recorder(store_of(session)).datastore
    seen = set()

    for _ in range(30):
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(texts, session).result() == ["words"]
            seen.add(thread.submit(lambda: datastore.reader).result())

    assert len(seen) == 1


def test_many_threads_that_end_leave_a_few_connections(session: StoredSession) -> None:
    datastore = sqlite_recorder(store_of(session)).datastore
    all_read = Barrier(3 * MAX_IDLE)

    def read() -> None:
        datastore.read("SELECT 1")
        all_read.wait(30)

    threads = [Thread(target=read) for _ in range(3 * MAX_IDLE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(datastore._idle) == MAX_IDLE
    assert len(datastore._readers) == 1


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
    session_key = str(uuid4())
    sessions = [store.session(session_key) for store in stores]
    said: list[str] = []
    waiting: list[str] = []
    seen = [session.position for session in sessions]

    for number, (who, what) in enumerate(turns):
        session, text = sessions[who], f"text {number}"
        block: AnyBlock = Block.user(text)
        expect = key = None
        match what:
            case "call":
                block = ToolCall(tool_call_id=text, name="tool", arguments=text)
                waiting.append(text)
            case "answer" if waiting:
                # Another process made the call, and this one answers it.
                block = ToolResult(tool_call_id=waiting.pop(0), content=text)
            case "expect":
                expect = session.position
                if seen[who] != expect:
                    with pytest.raises(ConflictError):
                        session.append(Block.user("refused"), expect=seen[who])
            case "key":
                key = text
        done = session.append(block, expect=expect, key=key)
        said.append(text)
        seen[who] = done.last
        if key:
            again = sessions[who - 1].append(block, key=key)
            assert (again.first, again.last) == (done.first, done.last)

    for session in sessions:
        assert texts(session) == said
        assert session.log.state.open_calls.keys() == set(waiting)

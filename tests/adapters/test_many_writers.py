"""Threads and processes that write to one file at once lose nothing and never fail."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import getsource
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from typing import Any

import pytest
from databases import on_sqlite
from faulty import check_log, one_line, texts
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult

PRELUDE = """
import sys
import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
path, name, *rest = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
"""
OPENS = """
with cutbank.open(path) as store:
    for key in ("shared", f"own {name}"):
        store.session(key).append(Block.user(f"said by {name}"))
"""
APPENDS = """
with cutbank.open(path, synchronous="NORMAL") as store:
    append_many(store, name, *map(int, rest))
"""


def run_children(code: str, path: Path, number: int, *arguments: int) -> None:
    """Run processes that begin together, and expect each to end well and without a word."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, path, str(child), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for child in range(number)
    ]
    try:
        for child in children:
            assert child.stdout
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            said, _ = child.communicate(timeout=240)
            assert (child.returncode, said) == (0, "")
    finally:
        for child in children:
            child.kill()
            child.communicate()


def append_many(store: SessionStore, name: str, sessions: int, times: int) -> None:
    for number in range(times):
        session = store.session(f"session {number % sessions}")
        call, text = f"{name}.{number}", f"{name} says {number}"
        if number % 3:
            session.append(Block.user(text))
        else:
            session.append(ToolCall(tool_call_id=call, name="tool", arguments=text))
            session.append(
                ToolResult(tool_call_id=call, content=f"{text}, answered"),
                Block.assistant(f"{text}, done"),
                key=call,
            )


def all_that_is_said(name: str, times: int) -> list[str]:
    return [
        f"{name} says {number}{rest}"
        for number in range(times)
        for rest in (("",) if number % 3 else ("", ", answered", ", done"))
    ]


@pytest.mark.parametrize("number", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_processes_that_start_together_on_a_new_file_all_get_in(
    tmp_path: Path, number: int
) -> None:
    path = tmp_path / "new.db"

    run_children(OPENS, path, number)

    names = [f"said by {child}" for child in range(number)]
    with cutbank.open(path) as store:
        assert sorted(texts(store.session("shared"))) == sorted(names)
        assert {session.key for session in store.sessions()} == {
            "shared",
            *(f"own {child}" for child in range(number)),
        }
        check_log(store)


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [1, 7])
def test_threads_and_processes_lose_nothing(tmp_path: Path, sessions: int) -> None:
    path, times = tmp_path / "log.db", 60
    with cutbank.open(path, synchronous="NORMAL") as store, ThreadPoolExecutor(8) as threads:
        done = [
            threads.submit(append_many, store, f"thread {number}", sessions, times)
            for number in range(8)
        ]

        run_children(getsource(append_many) + APPENDS, path, 4, sessions, times)

        for one in done:
            one.result()
        names = [f"thread {number}" for number in range(8)] + [str(child) for child in range(4)]
        said = Counter(text for session in store.sessions() for text in texts(session))
        assert said == Counter(text for name in names for text in all_that_is_said(name, times))
        check_log(store)


@pytest.mark.parametrize("name", ["log.db", ":memory:"])
@pytest.mark.parametrize("sessions", [1, 3])
def test_threads_of_one_store_lose_nothing(tmp_path: Path, name: str, sessions: int) -> None:
    where = tmp_path / name if name != ":memory:" else name
    with (
        cutbank.open(where, synchronous="NORMAL") as store,
        ThreadPoolExecutor(8) as threads,
    ):
        done = [
            threads.submit(append_many, store, str(number), sessions, 20) for number in range(8)
        ]

        for one in done:
            one.result()

        said = Counter(text for session in store.sessions() for text in texts(session))
        assert said == Counter(
            text for name in range(8) for text in all_that_is_said(str(name), 20)
        )
        check_log(store)


@pytest.mark.parametrize("name", ["log.db", ":memory:"])
def test_readers_in_other_threads_see_whole_appends(tmp_path: Path, name: str) -> None:
    where = tmp_path / name if name != ":memory:" else name
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

    with cutbank.open(where, synchronous="NORMAL") as store, ThreadPoolExecutor(4) as threads:
        session = store.session("session")
        readers = [threads.submit(read, store) for _ in range(4)]
        try:
            for number in range(100):
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
            for number in range(300):
                session.append(Block.user(f"{number}"))
        finally:
            finished.set()

        for one in reading:
            one.result()


@on_sqlite
def test_a_thread_takes_its_connection_along_when_it_ends(session: StoredSession) -> None:
    session.append(Block.user("words"))
    readers = sqlite_recorder(session.store).datastore._readers
    before = len(readers)

    for _ in range(30):
        seen: list[str] = []
        thread = Thread(target=lambda seen=seen: seen.extend(texts(session)))
        thread.start()
        thread.join()
        assert seen == ["words"]

    assert len(readers) == before


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("session")
        session.append(Block.user("words"))

    acts: list[Callable[[], Any]] = [
        lambda: session.append(Block.user("more")),
        session.view,
        lambda: session.position,
        lambda: store.session("another"),
        store.sessions,
    ]
    for act in acts:
        with one_line("log.db was closed"):
            act()
        # Nor does a thread that never read from it open it again.
        with one_line("log.db was closed"), ThreadPoolExecutor(1) as threads:
            threads.submit(act).result()
    store.close()

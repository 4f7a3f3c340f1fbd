"""What a store does in an event loop: the same verbs, finished though their caller is cancelled."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from threading import Event, Semaphore, get_ident
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from databases import each_database

from cutbank import (
    AsyncRecords,
    AsyncSession,
    AsyncStore,
    Block,
    SessionStore,
    StorageError,
    StoredSession,
    run_async,
    verify,
)
from cutbank.adapters.runtime.sessions.session_records import SessionRecords
from cutbank.adapters.runtime.worker_threads import MAX_THREADS, run_to_end

each_loop = pytest.mark.parametrize("backend", ["asyncio", "trio"])
REQUEST: ContextVar[str] = ContextVar("request", default="none")


def in_loop(backend: str, work: Callable[[], Awaitable[None]]) -> None:
    anyio.run(work, backend=backend)


@pytest.mark.parametrize(
    ("kind", "twin", "apart"),
    [
        # A twin has its source in `sync`, from which a log and its listeners are taken.
        # A batch is one thread's: a function holds it whole.
        (
            SessionStore,
            AsyncStore,
            {"context", "events", "settings", "listeners", "read_models", "batch"},
        ),
        (StoredSession, AsyncSession, {"log"}),
        (SessionRecords, AsyncRecords, set()),
    ],
)
def test_every_verb_has_its_twin(kind: type, twin: type, apart: set[str]) -> None:
    verbs = {name for name in dir(kind) if not name.startswith("_")} - apart
    data = {"key", "namespace", "name"}

    assert {name for name in dir(twin) if not name.startswith("_")} | data >= verbs
    for name in verbs - data:
        source, copy = getattr(kind, name), getattr(twin, name)
        if inspect.isfunction(source):
            assert list(inspect.signature(copy).parameters) == list(
                inspect.signature(source).parameters
            )


@each_database
@each_loop
def test_a_function_that_holds_a_batch_is_run_from_an_event_loop(
    store: SessionStore, backend: str
) -> None:
    def write(words: str, *, fails: bool) -> int:
        with store.batch():
            position = store.session("a session").append(Block.user(words)).last
            store.session("another").records.put("words", words)
            if fails:
                raise ConnectionError("the other service is down")
        return position

    async def work() -> None:
        await run_async(write, "stored", fails=False)
        with pytest.raises(ConnectionError):
            await run_async(write, "undone", fails=True)

    in_loop(backend, work)

    assert [one.block.text for one in store.session("a session").blocks()] == ["stored"]
    assert [one.value for one in store.session("another").records.history("words")] == ["stored"]


@each_database
@each_loop
def test_sessions_are_written_and_read_from_an_event_loop(
    store: SessionStore, backend: str
) -> None:
    async def work() -> None:
        twins = AsyncStore(store)
        session = await twins.session("a session")
        blocks = [Block.user(f"{number}") for number in range(250)]
        first = await session.append(*blocks, key="first")
        await session.records.put("state", {"step": 1})

        read = [one.block async for one in session.blocks()]
        assert read == blocks
        assert [one.block.text async for one in session.blocks(last=2)] == ["248", "249"]
        assert await session.find("first") == first
        fork = await session.fork("a fork", at=first.first)
        assert len((await fork.view()).entries) == 1
        assert [one.key for one in await twins.sessions()] == ["a fork", "a session"]
        state = await session.records.get("state")
        assert state is not None
        assert state.value == {"step": 1}
        assert [one.name async for one in session.records.newest()] == ["state"]
        assert (await session.info()).state.blocks == 250
        assert (await run_async(verify, store)).is_ok

    in_loop(backend, work)


class HeldWrite:
    """A write that waits, once it has begun, until the test lets it go on."""

    def __init__(self, session: StoredSession) -> None:
        self.session = session
        self.begun, self.may_end = Event(), Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.may_end.wait(30)
        self.session.append(Block.user("whole"))


@each_loop
def test_a_cancelled_scope_waits_until_its_write_is_whole(
    session: StoredSession, backend: str
) -> None:
    write, before = HeldWrite(session), session.position

    async def work() -> None:
        ended, scope = anyio.Event(), anyio.CancelScope()

        async def caller() -> None:
            with scope:
                await run_async(write)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(caller)
            await anyio.to_thread.run_sync(write.begun.wait, 30)
            scope.cancel()
            for _ in range(20):
                await checkpoint()
            assert not ended.is_set()
            write.may_end.set()
        assert scope.cancelled_caught

    in_loop(backend, work)
    assert session.position > before


def test_a_cancelled_task_of_asyncio_waits_until_its_write_is_whole(
    session: StoredSession,
) -> None:
    write, before = HeldWrite(session), session.position

    async def work() -> None:
        task = asyncio.create_task(run_async(write))
        assert await asyncio.to_thread(write.begun.wait, 30)
        for _ in range(20):
            task.cancel()  # again and again, as a shutdown may
            await asyncio.sleep(0)
        assert not task.done()
        write.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert session.position > before


@each_loop
def test_a_write_that_waits_for_a_thread_is_absent_once_it_is_cancelled(
    session: StoredSession, backend: str
) -> None:
    begun, may_end, before = Semaphore(0), Event(), session.position

    def hold() -> None:
        begun.release()
        assert may_end.wait(30)

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_THREADS):
                tasks.start_soon(run_async, hold)
            for _ in range(MAX_THREADS):
                await anyio.to_thread.run_sync(begun.acquire)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await AsyncSession(session).append(Block.user("absent"))
            assert scope.cancelled_caught
            may_end.set()

    in_loop(backend, work)
    assert session.position == before


@each_loop
def test_what_waits_for_a_model_keeps_no_write_waiting(
    session: StoredSession, backend: str
) -> None:
    begun, stopped = Semaphore(0), Event()

    def hold() -> None:
        begun.release()
        assert stopped.wait(30)

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_THREADS):
                tasks.start_soon(run_to_end, hold, stopped.set)
            for _ in range(MAX_THREADS):
                await anyio.to_thread.run_sync(begun.acquire)
            await AsyncSession(session).append(Block.user("at once"))
            assert not stopped.is_set()
            tasks.cancel_scope.cancel()

    in_loop(backend, work)


@each_loop
def test_a_call_sees_the_context_of_its_task(backend: str) -> None:
    async def work() -> None:
        REQUEST.set("mine")
        assert await run_async(REQUEST.get) == "mine"

    in_loop(backend, work)


@each_loop
def test_many_calls_at_once_share_a_few_threads(backend: str) -> None:
    threads: set[int] = set()

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(10 * MAX_THREADS):
                tasks.start_soon(run_async, lambda: threads.add(get_ident()))

    in_loop(backend, work)
    assert 0 < len(threads) <= MAX_THREADS


@each_loop
def test_a_store_is_closed_when_its_block_is_left(store: SessionStore, backend: str) -> None:
    async def work() -> None:
        async with AsyncStore(store) as twins:
            session = await twins.session("a session")
            await session.append(Block.user("a"))
        with pytest.raises(StorageError):
            await session.append(Block.user("b"))

    in_loop(backend, work)


def test_a_twin_describes_itself_as_its_source(session: StoredSession) -> None:
    twin: Any = AsyncSession(session)

    assert twin.append.__doc__ == StoredSession.append.__doc__
    assert repr(twin) == f"<async {session!r}>"

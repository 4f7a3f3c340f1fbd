"""Runs calls in worker threads for an event loop of asyncio or trio, each to its end."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial, wraps
from itertools import islice
from threading import Event, Lock
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from anyio import CancelScope, CapacityLimiter, get_cancelled_exc_class, to_thread
from anyio.lowlevel import RunVar

MAX_THREADS = 16
"""The most threads of one event loop, each with its own connection to the database."""
_PAGE_ITEMS = 100
"""How many items of an iterator one call of a thread reads."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R")

_threads = RunVar[CapacityLimiter]("cutbank_threads")
_waiting_threads = RunVar[CapacityLimiter]("cutbank_waiting_threads")


async def run_async(call: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a call in a worker thread, with the context variables of the task.

    If the task is cancelled, a call that has begun is finished first, and one that waits for a
    thread never begins: a write is whole or absent.
    """
    return await run_to_end(partial(call, *args, **kwargs))


async def run_to_end(work: Callable[[], _T], on_cancel: Callable[[], object] | None = None) -> _T:
    """Run work in a worker thread; if the task is cancelled, wait for its end and then raise.

    With `on_cancel`, which tells the work to stop early, it may wait for a model, and has threads
    apart, so that it keeps no others waiting.
    """
    limiter = _get_limiter(_threads if on_cancel is None else _waiting_threads)
    begun, ended = Lock(), Event()

    def run() -> _T:
        if not begun.acquire(blocking=False):
            raise RuntimeError("the call was cancelled before it began")  # nothing waits for it
        try:
            return work()
        finally:
            ended.set()

    cancelled = get_cancelled_exc_class()
    try:
        return await to_thread.run_sync(run, limiter=limiter, abandon_on_cancel=True)
    except cancelled:
        if not begun.acquire(blocking=False):
            if on_cancel is not None:
                on_cancel()
            while not ended.is_set():
                # A scope does not shield from asyncio's cancel(), which may come again.
                with suppress(cancelled), CancelScope(shield=True):
                    await to_thread.run_sync(ended.wait, limiter=CapacityLimiter(1))
        raise


def _get_limiter(known: RunVar[CapacityLimiter]) -> CapacityLimiter:
    try:
        return known.get()
    except LookupError:
        known.set(limiter := CapacityLimiter(MAX_THREADS))
        return limiter


async def iterate_async(call: Callable[[], Iterator[_T]]) -> AsyncIterator[_T]:
    """Yield what the iterator of a call yields, read by worker threads page by page."""
    items = await run_async(call)
    while page := await run_async(list, islice(items, _PAGE_ITEMS)):
        for item in page:
            yield item


@overload
def make_async(
    method: Callable[Concatenate[Any, _P], _T],
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]]: ...


@overload
def make_async(
    method: Callable[Concatenate[Any, _P], _T], wrap: Callable[[_T], _R]
) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]: ...


def make_async(
    method: Callable[..., Any], wrap: Callable[[Any], Any] | None = None
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the async twin of a method, for a class whose `sync` has that method.

    `wrap` makes the twin of the method's result.
    """

    @wraps(method)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = await run_async(method, self.sync, *args, **kwargs)
        return wrap(result) if wrap else result

    return call


def make_async_iterator(
    method: Callable[Concatenate[Any, _P], Iterator[_T]],
) -> Callable[Concatenate[Any, _P], AsyncIterator[_T]]:
    """Return the twin of a method that returns an iterator, to be read with `async for`."""

    @wraps(method)
    def call(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> AsyncIterator[_T]:
        return iterate_async(partial(method, self.sync, *args, **kwargs))

    return call

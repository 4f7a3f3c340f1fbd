"""Runs work in threads, cancels it from any other, and compacts in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from contextvars import copy_context
from inspect import isawaitable
from threading import Event, Lock, Thread, current_thread
from typing import Generic, TypeVar
from uuid import UUID

from ....domain.errors import CompactionCancelledError, CutbankError, SummarizerFailedError

_T = TypeVar("_T")

logger = logging.getLogger("cutbank.compaction")


class Cancellation:
    """A request to stop some work; the worker checks it, or registers a callback that stops it."""

    def __init__(self) -> None:
        self._told = Event()
        self._changing = Lock()
        self._stops: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._told.is_set()

    def request(self) -> None:
        with self._changing:
            self._told.set()
            stops = list(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raise CompactionCancelledError if cancellation was requested."""
        if self.is_requested:
            raise CompactionCancelledError(
                "the compaction was cancelled: the view is as it was before it"
            )

    def pause(self, seconds: float) -> None:
        """Wait; raise CompactionCancelledError as soon as the work is cancelled."""
        self._told.wait(seconds)
        self.check()

    @contextmanager
    def call_on_cancel(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` when the work is cancelled within this context, or now if it already was."""
        with self._changing:
            self._stops.append(stop)
            is_late = self.is_requested
        if is_late:
            stop()
        try:
            yield
        finally:
            with self._changing:
                self._stops.remove(stop)


class TimeLimitError(Exception):
    """Raised if work in a thread takes longer than it may."""


def run_in_thread(
    work: Callable[[], Awaitable[_T] | _T],
    name: str,
    time_limit_s: float,
    cancellation: Cancellation,
) -> _T:
    """Return what the work returns, or its error; an awaitable gets an event loop of its own.

    Raises TimeLimitError if it exceeds its time, CompactionCancelledError if it was stopped.
    """
    run = _Run(work, name)
    with cancellation.call_on_cancel(run.stop):
        run.thread.start()
        try:
            return run.result.result(time_limit_s)
        except FutureTimeoutError as error:
            if run.result.done():
                raise  # a timeout of its own, not ours
            raise TimeLimitError from error
        except CancelledError:
            cancellation.check()
            raise SummarizerFailedError(f"{name} gave up its work") from None
        finally:
            # Also after an interrupt: nothing will use the result.
            run.stop()


_STOP_TIMEOUT_S = 5.0
"""How long to wait until stopped work has closed its connections and programs."""


class _Run(Generic[_T]):
    """One call of some work.

    An event loop cannot be entered twice in one thread, and the caller's thread may run one, so
    each call gets its own thread. Work that awaits nothing cannot be stopped: its daemon thread is
    left behind. The thread gets the caller's context variables, so that traces nest correctly.
    """

    def __init__(self, work: Callable[[], Awaitable[_T] | _T], name: str) -> None:
        self.result: Future[_T] = Future()
        self.thread = Thread(
            target=copy_context().run, args=(self._run, work), name=name, daemon=True
        )
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        self._is_stopped = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._task.cancel)
            self.thread.join(_STOP_TIMEOUT_S)
        self.result.cancel()

    def _run(self, work: Callable[[], Awaitable[_T] | _T]) -> None:
        try:
            promise = work()
            result = asyncio.run(self._await(promise)) if isawaitable(promise) else promise
        except asyncio.CancelledError:
            self.result.cancel()
        except BaseException as error:  # noqa: BLE001 - passed to the waiting thread
            with suppress(InvalidStateError):  # it is no longer awaited
                self.result.set_exception(error)
        else:
            with suppress(InvalidStateError):
                self.result.set_result(result)

    async def _await(self, promise: Awaitable[_T]) -> _T:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        # `stop` sets the flag before it looks for the loop, so at least one side sees the other.
        if self._is_stopped and self._task is not None:
            self._task.cancel()
        return await promise


BackgroundWork = Callable[[Cancellation], str | None]
"""Prepares a boundary; returns why it could not, or None if it did."""


class BackgroundCompactions:
    """The background compactions of one store's sessions, one at a time for each lineage."""

    def __init__(self) -> None:
        self._changing = Lock()
        self._running: dict[UUID, tuple[Thread, Cancellation]] = {}
        self._in_vain: dict[UUID, int] = {}
        """The size of each session, in tokens, when its newest preparation failed."""
        self._is_ended = False

    def begin(self, lineage: UUID, size: int, work: BackgroundWork) -> None:
        """Start the work in a thread unless it is already running; `size` is the session's."""
        cancellation = Cancellation()
        thread = Thread(
            target=self._run,
            args=(lineage, size, work, cancellation),
            name="cutbank-preparation",
            daemon=True,
        )
        with self._changing:
            if self._is_ended or lineage in self._running:
                return
            thread.start()
            self._running[lineage] = (thread, cancellation)

    def is_running(self, lineage: UUID) -> bool:
        """Return whether this process is preparing a boundary of the lineage."""
        return lineage in self._running

    def is_futile(self, lineage: UUID, size: int, regrowth: float) -> bool:
        """Return whether the last preparation failed and the session has hardly grown since."""
        failed_at = self._in_vain.get(lineage)
        return failed_at is not None and size - failed_at < regrowth

    def join(self, lineage: UUID, cancellation: Cancellation) -> bool:
        """Wait for the work on a lineage; return whether there was any.

        A request on `cancellation` stops the work and raises CompactionCancelledError.
        """
        with self._changing:
            thread, theirs = self._running.get(lineage, (None, None))
        if thread is None or theirs is None or thread is current_thread():
            return False
        with cancellation.call_on_cancel(theirs.request):
            thread.join()
        cancellation.check()
        return True

    def stop(self) -> None:
        """Cancel all work, wait for it, and refuse to begin any more."""
        with self._changing:
            self._is_ended = True
            running = list(self._running.values())
        for _, cancellation in running:
            cancellation.request()
        for thread, _ in running:
            if thread is not current_thread():  # a listener may close the store
                thread.join()

    def _run(
        self, lineage: UUID, size: int, work: BackgroundWork, cancellation: Cancellation
    ) -> None:
        why: str | None = "it failed"
        try:
            why = work(cancellation)
            if why is not None:
                logger.info("a boundary was not prepared: %s", why)
        except CutbankError as error:
            is_wanted = isinstance(error, CompactionCancelledError)
            level = logging.INFO if is_wanted else logging.WARNING
            logger.log(level, "a boundary was not prepared: %s", error)
        except Exception:  # the thread's errors have no caller
            logger.exception("a boundary could not be prepared")
        finally:
            with self._changing:
                if why is None:
                    self._in_vain.pop(lineage, None)
                else:
                    self._in_vain[lineage] = size
                del self._running[lineage]

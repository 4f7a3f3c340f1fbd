"""Cancels work from any thread."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as OutOfTimeError
from contextlib import contextmanager, suppress
from contextvars import copy_context
from inspect import isawaitable
from threading import Event, Lock, Thread

from ....domain.errors import CompactionCancelledError, SummarizerFailedError
from ....domain.summaries.summarizer import Draft, Material, Summarizer


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


_STOP_TIMEOUT_S = 5.0
"""How long to wait until a stopped summarizer has closed its connections and programs."""


def run_summarizer(
    summarizer: Summarizer, material: Material, *, time_limit_s: float, cancellation: Cancellation
) -> Draft:
    """Return the summarizer's draft, or raise its error.

    Raises SummarizerFailedError if it exceeds its time, CompactionCancelledError if it was stopped.
    """
    run = _Run(summarizer, material)
    with cancellation.call_on_cancel(run.stop):
        run.thread.start()
        try:
            return run.draft.result(time_limit_s)
        except OutOfTimeError as error:
            if run.draft.done():
                raise  # a timeout of its own, not ours
            raise SummarizerFailedError(
                f"{summarizer.name} took longer than its {time_limit_s:.3g} seconds"
            ) from error
        except CancelledError:
            cancellation.check()
            raise SummarizerFailedError(f"{summarizer.name} gave up its work") from None
        finally:
            # Also after an interrupt: nothing will use this draft.
            run.stop()


class _Run:
    """One call of a summarizer.

    An event loop cannot be entered twice in one thread, and the caller's thread may run one, so
    each call gets its own thread. A synchronous summarizer cannot be stopped: its daemon thread is
    left behind. The thread gets the caller's context variables, so that traces nest correctly.
    """

    def __init__(self, summarizer: Summarizer, material: Material) -> None:
        self.draft: Future[Draft] = Future()
        self.thread = Thread(
            target=copy_context().run,
            args=(self._work, summarizer, material),
            name="cutbank-summary",
            daemon=True,
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
        self.draft.cancel()

    def _work(self, summarizer: Summarizer, material: Material) -> None:
        try:
            promise = summarizer.summarize(material)
            draft = asyncio.run(self._await_draft(promise)) if isawaitable(promise) else promise
        except asyncio.CancelledError:
            self.draft.cancel()
        except BaseException as error:  # noqa: BLE001 - passed to the waiting thread
            self._set_result(error)
        else:
            self._set_result(draft)

    async def _await_draft(self, promise: Awaitable[Draft]) -> Draft:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        # `stop` sets the flag before it looks for the loop, so at least one side sees the other.
        if self._is_stopped and self._task is not None:
            self._task.cancel()
        return await promise

    def _set_result(self, draft: Draft | BaseException) -> None:
        with suppress(Exception):  # InvalidStateError: the draft is no longer awaited
            if isinstance(draft, BaseException):
                self.draft.set_exception(draft)
            else:
                self.draft.set_result(draft)

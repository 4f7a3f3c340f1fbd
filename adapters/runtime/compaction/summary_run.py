"""Runs one summariser in a thread of its own, with a time limit, so that it can be stopped."""

import asyncio
from collections.abc import Awaitable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as OutOfTimeError
from contextlib import suppress
from contextvars import copy_context
from inspect import isawaitable
from threading import Thread

from ....domain.errors import SummarizerFailedError
from ....domain.summaries.summarizer import Draft, Material, Summarizer
from .cancellation import Cancellation

_STOP_TIMEOUT_S = 5.0
"""How long a summariser that was stopped is waited for, to end its connections and programs."""


def run_summarizer(
    summarizer: Summarizer, material: Material, *, time_limit_s: float, cancellation: Cancellation
) -> Draft:
    """The summariser's draft, or whatever it raises.

    Raises SummariserFailedError when its time is over, CompactionCancelledError when it was
    stopped.
    """
    run = _Run(summarizer, material)
    with cancellation.call_on_cancel(run.stop):
        run.thread.start()
        try:
            return run.draft.result(time_limit_s)
        except OutOfTimeError as error:
            if run.draft.done():
                raise  # its own: it waited for somebody and gave up
            raise SummarizerFailedError(
                f"{summarizer.name} took longer than its {time_limit_s:.3g} seconds"
            ) from error
        except CancelledError:
            cancellation.check()
            raise SummarizerFailedError(f"{summarizer.name} gave up its work") from None
        finally:
            # Also where somebody interrupts: nobody will ask for this draft any more.
            run.stop()


class _Run:
    """One call of a summariser.

    An event loop cannot be entered twice in one thread, and the caller's may have one running:
    so each call has a thread of its own. One that is synchronous cannot be stopped; it is left
    behind, and the process does not wait for it when it ends. It finds the caller's context
    variables there, so that what it asks of others is traced below what it was asked for.
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
        """End it, and wait until what can be stopped has ended."""
        self._is_stopped = True
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has just ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
            self.thread.join(_STOP_TIMEOUT_S)
        self.draft.cancel()

    def _work(self, summarizer: Summarizer, material: Material) -> None:
        try:
            promise = summarizer.summarize(material)
            draft = asyncio.run(self._await_draft(promise)) if isawaitable(promise) else promise
        except asyncio.CancelledError:
            self.draft.cancel()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for the draft
            self._set_result(error)
        else:
            self._set_result(draft)

    async def _await_draft(self, promise: Awaitable[Draft]) -> Draft:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        # Whoever stops says so before looking for the loop: one of the two sees the other.
        if self._is_stopped and self._task is not None:
            self._task.cancel()
        return await promise

    def _set_result(self, draft: Draft | BaseException) -> None:
        with suppress(Exception):  # InvalidStateError: nobody waits for it any more
            if isinstance(draft, BaseException):
                self.draft.set_exception(draft)
            else:
                self.draft.set_result(draft)

"""Asks one summarizer after another until a draft passes the gate; the last one cannot fail."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as OutOfTimeError
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from inspect import isawaitable
from threading import Thread
from time import monotonic
from typing import Any

from ....domain.errors import CompactionCancelledError, RejectedSummaryError, SummarizerFailedError
from ....domain.hooks import CompactionEventKind
from ....domain.session_events import Usage
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.summaries.summarizer import (
    Draft,
    ListingSummarizer,
    Material,
    NoticeSummarizer,
    Summarizer,
)
from ....domain.window import OnFailure
from .background import Cancellation
from .event_sink import Notify, ignore_event

_MAX_PAUSE_S = 30.0

CheckDraft = Callable[[Draft], None]
"""Raises RejectedSummaryError if a draft may not replace the blocks that left."""


@dataclass(frozen=True, slots=True)
class DraftRefusal:
    summarizer: str
    reason: str
    rule: str | None = None
    """The gate's rule that the draft broke; None if there was no draft."""
    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    error: str | None = None
    """The type of error that the summarizer raised instead."""

    def __str__(self) -> str:
        return f"{self.summarizer}: {f'{self.rule}: ' if self.rule else ''}{self.reason}"

    def to_details(self) -> dict[str, Any]:
        """Return the details of its event."""
        return asdict(self) | {"reason": str(self)}


@dataclass(frozen=True, slots=True)
class AcceptedDraft:
    draft: Draft
    summarizer: str
    latency_s: float
    refusals: tuple[DraftRefusal, ...] = ()

    def to_details(self) -> dict[str, Any]:
        """Return the details of its event."""
        return {
            "summarizer": self.summarizer,
            "model": self.draft.model,
            "usage": self.draft.usage,
            "cost_usd": self.draft.cost_usd,
            "latency_s": self.latency_s,
        }


class UnwrittenError(SummarizerFailedError):
    """Raised if no summarizer returned an acceptable draft; the message lists each one's reason."""

    def __init__(self, refusals: Sequence[DraftRefusal]) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)


@dataclass(frozen=True)
class SummaryChain:
    """The summarizers to ask, in order, with time limits and retries.

    `extractive` follows the given ones, and `listing` ends the chain: both need only the log. A
    plan may demand a notice instead, or nothing at all. If the gate refuses a draft, the summarizer
    gets one more attempt, with the reason.
    """

    summarizers: tuple[Summarizer, ...] = ()
    time_limit_s: float = 120.0
    """The limit for each summarizer, including its retries and the pauses between them."""
    retries: int = 3
    """How often to ask a summarizer again after a temporary failure."""
    backoff_s: float = 1.0
    """The first pause between two attempts; each further one is twice as long, up to 30 s."""
    has_fallback: bool = True
    """Whether `extractive` writes if all others failed; False leaves it to a later attempt."""

    @property
    def max_duration_s(self) -> float:
        return self.time_limit_s * (len(self.summarizers) + 1)

    def write(
        self,
        material: Material,
        judge: CheckDraft,
        cancellation: Cancellation,
        notify: Notify = ignore_event,
        on_failure: OnFailure = OnFailure.EXTRACTIVE,
    ) -> AcceptedDraft:
        """Return the first draft that passes; `notify` gets each beginning, refusal and acceptance.

        Raises CompactionCancelledError if cancelled, UnwrittenError if all fail and no fallback is
        allowed.
        """
        refusals: list[DraftRefusal] = []
        for summarizer in self._order_summarizers(on_failure):
            notify(CompactionEventKind.SUMMARIZING, summarizer=summarizer.name)
            began, known = monotonic(), len(refusals)
            try:
                draft = self._write_accepted(summarizer, material, judge, cancellation, refusals)
            except CompactionCancelledError:
                raise
            except RejectedSummaryError:
                pass  # each of its drafts is among the refusals
            except Exception as error:  # noqa: BLE001 - users' summarizers may raise anything
                reason = _to_one_line(error)
                took = monotonic() - began
                kind = type(error).__qualname__
                refusals.append(DraftRefusal(summarizer.name, reason, latency_s=took, error=kind))
            else:
                break
            finally:
                for refusal in refusals[known:]:
                    notify(CompactionEventKind.REJECTED, **refusal.to_details())
            cancellation.check()
        else:
            if refusals and (on_failure is OnFailure.UNCHANGED or not self.has_fallback):
                raise UnwrittenError(refusals)
            began = monotonic()
            is_notice = on_failure is OnFailure.NOTICE
            summarizer = NoticeSummarizer() if is_notice else ListingSummarizer()
            notify(CompactionEventKind.SUMMARIZING, summarizer=summarizer.name)
            draft = summarizer.summarize(material)
        written = AcceptedDraft(draft, summarizer.name, monotonic() - began, tuple(refusals))
        notify(CompactionEventKind.SUMMARIZED, **written.to_details())
        return written

    def _order_summarizers(self, on_failure: OnFailure) -> Sequence[Summarizer]:
        own = ExtractiveSummarizer()
        others = [one for one in self.summarizers if one.name != own.name]
        if others and not self.has_fallback:
            return others
        is_named = len(others) < len(self.summarizers)
        follows = not others or on_failure is OnFailure.EXTRACTIVE
        return (*self.summarizers, own) if follows and not is_named else self.summarizers

    def _write_accepted(
        self,
        summarizer: Summarizer,
        material: Material,
        judge: CheckDraft,
        cancellation: Cancellation,
        refusals: list[DraftRefusal],
    ) -> Draft:
        """Return a draft that passes at the first or second attempt."""
        ends = monotonic() + self.time_limit_s
        asked = material
        while True:
            began = monotonic()
            draft = self._write_draft(summarizer, asked, ends, cancellation)
            try:
                judge(draft)
            except RejectedSummaryError as error:
                refusals.append(
                    DraftRefusal(
                        summarizer.name,
                        error.reason,
                        error.rule,
                        draft.model,
                        draft.usage,
                        draft.cost_usd,
                        monotonic() - began,
                    )
                )
                # An extractive summary would be the same again.
                if asked is not material or isinstance(summarizer, ExtractiveSummarizer):
                    raise
                asked = replace(material, instructions=_make_correction(material, error))
            else:
                return draft

    def _write_draft(
        self, summarizer: Summarizer, material: Material, ends: float, cancellation: Cancellation
    ) -> Draft:
        """Return a draft, retrying after temporary failures while time is left."""
        pause, tries = self.backoff_s, 0
        while True:
            cancellation.check()
            if isinstance(summarizer, ExtractiveSummarizer):
                return summarizer.summarize(material)  # by rules, from the log: nothing to wait for
            try:
                return run_summarizer(
                    summarizer,
                    material,
                    time_limit_s=max(ends - monotonic(), 0.0),
                    cancellation=cancellation,
                )
            except SummarizerFailedError as error:
                wait = max(min(pause, _MAX_PAUSE_S), error.retry_after_s or 0.0)
                if not error.is_transient or tries >= self.retries:
                    raise
                if monotonic() + wait >= ends:
                    raise SummarizerFailedError(
                        f"{error}; to wait {wait:g} s more would take longer than "
                        f"its {self.time_limit_s:g} seconds"
                    ) from error
            cancellation.pause(wait)
            pause, tries = 2 * pause, tries + 1


def _make_correction(material: Material, error: RejectedSummaryError) -> str:
    # Leave out what the reason quotes from the draft: it may be tool output, and this is a prompt.
    reason = error.reason.partition(":")[0]
    refusal = f"Your last draft was refused ({error.rule}): {reason}. Write one that is not."
    return "\n".join(filter(None, (material.instructions, refusal)))


def _to_one_line(error: Exception) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, SummarizerFailedError) else f"{type(error).__name__}: {words}"


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

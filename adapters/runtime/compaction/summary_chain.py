"""Asks one summarizer after another until a draft passes the gate; the last one cannot fail."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

from ....domain.errors import (
    CompactionCancelledError,
    MissingSummariesError,
    RejectedSummaryError,
    SummarizerFailedError,
)
from ....domain.hooks import CompactionEventKind
from ....domain.ranges import Ranges
from ....domain.session_events import Usage
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.summaries.gate import check_draft
from ....domain.summaries.summarizer import (
    Draft,
    ListingSummarizer,
    Material,
    NoticeSummarizer,
    Summarizer,
)
from ....domain.window import OnFailure
from ....projections.planned_compaction import PlannedCompaction, list_user_texts, reuse_summary
from ....projections.view_content import RecordedEvent
from .background import Cancellation, TimeLimitError, run_in_thread

_MAX_PAUSE_S = 30.0

CheckDraft = Callable[[Draft], None]
"""Raises RejectedSummaryError if a draft may not replace the blocks that left."""

Notify = Callable[..., object]
"""Passes on a `CompactionEventKind`, with the event's details by name."""


def ignore_event(moment: CompactionEventKind, **details: object) -> None:
    """Ignore the event."""


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

    def write_planned(
        self,
        planned: PlannedCompaction,
        read: Callable[[Ranges], Iterable[RecordedEvent]],
        cancellation: Cancellation,
        notify: Notify = ignore_event,
    ) -> AcceptedDraft:
        """Return the text of a compaction; `read` reads the log, for the gate.

        If nothing leaves, it is the earlier summary, and a notice if the policy wants no summary.
        Raises as `write`.
        """
        material = planned.material
        if not material.removed_items:
            return AcceptedDraft(*reuse_summary(planned), 0.0)
        if not planned.plan.summary_tokens:
            notice = NoticeSummarizer()
            return AcceptedDraft(notice.summarize(material), notice.name, 0.0)

        def judge(draft: Draft) -> None:
            check_draft(draft, material, user_texts=list_user_texts(draft, material, read))

        return self.write(material, judge, cancellation, notify, planned.plan.on_failure)

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

        def refuse(refusal: DraftRefusal) -> None:
            refusals.append(refusal)
            notify(CompactionEventKind.REJECTED, **refusal.to_details())

        for summarizer in self._order_summarizers(on_failure):
            notify(CompactionEventKind.SUMMARIZING, summarizer=summarizer.name)
            began = monotonic()
            draft = self._ask_summarizer(summarizer, material, judge, cancellation, refuse)
            if draft is not None:
                break
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

    def _ask_summarizer(
        self,
        summarizer: Summarizer,
        material: Material,
        judge: CheckDraft,
        cancellation: Cancellation,
        refuse: Callable[[DraftRefusal], None],
    ) -> Draft | None:
        """Return a draft that passes at the first or second attempt; None if it has none."""
        name, ends, asked = summarizer.name, monotonic() + self.time_limit_s, material
        while True:
            began = monotonic()
            try:
                draft = self._write_draft(summarizer, asked, ends, cancellation)
            except (CompactionCancelledError, MissingSummariesError):
                raise
            except Exception as error:  # noqa: BLE001 - users' summarizers may raise anything
                reason, kind = _to_one_line(error), type(error).__qualname__
                refuse(DraftRefusal(name, reason, latency_s=monotonic() - began, error=kind))
                return None
            try:
                judge(draft)
            except RejectedSummaryError as error:
                took, paid = monotonic() - began, (draft.model, draft.usage, draft.cost_usd)
                refuse(DraftRefusal(name, error.reason, error.rule, *paid, took))
                # An extractive summary would be the same again.
                if asked is not material or isinstance(summarizer, ExtractiveSummarizer):
                    return None
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
            limit_s = max(ends - monotonic(), 0.0)
            try:
                write = partial(summarizer.summarize, material)
                return run_in_thread(write, "cutbank-summary", limit_s, cancellation)
            except TimeLimitError as error:
                raise SummarizerFailedError(
                    f"{summarizer.name} took longer than its {limit_s:.3g} seconds"
                ) from error
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

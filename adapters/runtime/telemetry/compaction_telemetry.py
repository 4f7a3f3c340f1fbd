"""Traces a compaction as a span, with a child span for each summarizer."""

from enum import StrEnum
from types import TracebackType
from typing import Self

from ....domain.errors import (
    CompactionCancelledError,
    CompactionVetoedError,
    LeaseHeldError,
    LeaseLostError,
    NothingToCompactError,
    StalePlanError,
)
from ....domain.hooks import CompactionEvent, CompactionEventKind
from ...storage.view_reader import ViewReader
from ..compaction.event_sink import CompactionObserver
from ..compaction.options import CompactionRequest
from ..compaction.outcome import CompactionOutcome
from .current_span import Attributes, CurrentSpan, drop_missing
from .error_logging import log_errors
from .instruments import get_instruments, get_tracer
from .summary_span import SummarySpan


class CompactionResult(StrEnum):
    COMPACTED = "compacted"
    PREPARED = "prepared"
    """A boundary was recorded, and waits for its activation."""
    DONE_BEFORE = "done_before"
    """An earlier run had the same idempotency key."""
    NO_NEED = "no_need"
    NOTHING_TO_GAIN = "nothing_to_gain"
    VETOED = "vetoed"
    OVERTAKEN = "overtaken"
    """Another process has decided first."""
    LEASE_HELD = "lease_held"
    """Another worker holds the session."""
    LEASE_LOST = "lease_lost"
    """Another worker has taken over; the summary is not used."""
    CANCELLED = "cancelled"
    FAILED = "failed"


_RESULT_BY_ERROR: dict[type[BaseException], CompactionResult] = {
    NothingToCompactError: CompactionResult.NOTHING_TO_GAIN,
    CompactionVetoedError: CompactionResult.VETOED,
    StalePlanError: CompactionResult.OVERTAKEN,
    LeaseHeldError: CompactionResult.LEASE_HELD,
    LeaseLostError: CompactionResult.LEASE_LOST,
    CompactionCancelledError: CompactionResult.CANCELLED,
}
"""The errors that state a result; any other is a failure."""


class CompactionTelemetry(CompactionObserver):
    """The span and the metrics of one compaction.

    Its spans are current in the compacting thread while they last, so that spans of hooks and
    providers' clients become their children.
    """

    def __init__(self, reader: ViewReader, order: CompactionRequest) -> None:
        self._reader = reader
        self._order = order
        self._result = CompactionResult.FAILED
        self._was_planned = self._was_recorded = False
        self._span: CurrentSpan | None = None
        self._summary: SummarySpan | None = None

    def __enter__(self) -> Self:
        with log_errors("a compaction"):
            self._instruments = get_instruments()
            self._tracer = get_tracer()
            self._span = CurrentSpan(self._tracer, "cutbank.compact", self._request_attributes)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._span is None:
            return
        if self._summary:
            self._summary.cancel()
        self._end_summary()
        with log_errors("a compaction"):
            wrong = None
            if kind is not None:
                self._result = _find_result(kind)
                wrong = kind.__qualname__ if self._result is CompactionResult.FAILED else None
            result: Attributes = {"cutbank.compaction.outcome": self._result.value}
            self._span.add(result)
            try:
                # While the span is current, so that exemplars link to it.
                duration = self._instruments.compaction_duration
                duration.record(self._span.seconds, drop_missing(self._reason_attributes | result))
            finally:
                self._span.end(wrong)

    def __call__(self, happening: CompactionEvent) -> None:
        if self._span is None:
            return
        with log_errors(f"{happening.moment} of a compaction"):
            self._record_event(self._span, happening)

    def finish(self, outcome: CompactionOutcome) -> CompactionOutcome:
        if self._was_recorded:
            self._result = (
                CompactionResult.COMPACTED if self._order.activate else CompactionResult.PREPARED
            )
        elif outcome.compacted:
            self._result = CompactionResult.DONE_BEFORE
        else:
            self._result = (
                CompactionResult.OVERTAKEN if self._was_planned else CompactionResult.NO_NEED
            )
        return outcome

    def _record_event(self, span: CurrentSpan, happening: CompactionEvent) -> None:
        before, after = happening.before, happening.after
        match happening.moment:
            case CompactionEventKind.PRE_COMPACT if before:
                self._was_planned = True
                span.add(
                    {
                        "cutbank.tokens.before": before.tokens,
                        "cutbank.blocks.before": before.blocks,
                    }
                )
            case CompactionEventKind.SUMMARIZING:
                self._end_summary()
                self._summary = SummarySpan(self._tracer, self._instruments, happening.summariser)
            case CompactionEventKind.REJECTED if self._summary:
                self._summary.reject(happening)
            case CompactionEventKind.SUMMARIZED if self._summary:
                self._summary.accept(happening)
                self._end_summary()
            case CompactionEventKind.RECORDED if before and after:
                self._was_recorded = True
                span.add(
                    {
                        "cutbank.tokens.after": after.tokens,
                        "cutbank.blocks.after": after.blocks,
                        "cutbank.boundary": happening.boundary,
                        "cutbank.summariser": happening.summariser,
                    }
                )
                saved = max(before.tokens - after.tokens, 0)
                self._instruments.tokens_saved.add(saved, drop_missing(self._reason_attributes))
            case _:
                pass

    def _end_summary(self) -> None:
        if (summary := self._summary) is not None:
            self._summary = None
            with log_errors("a summariser"):
                summary.end()

    @property
    def _request_attributes(self) -> Attributes:
        return self._reason_attributes | {
            "gen_ai.conversation.id": self._reader.key,
            "cutbank.namespace": self._reader.namespace,
            "cutbank.lineage": self._reader.lineage,
            "cutbank.limit": self._order.limit,
        }

    @property
    def _reason_attributes(self) -> Attributes:
        return {
            "cutbank.trigger": self._order.trigger.value,
            "cutbank.policy": self._order.policy.name,
        }


def _find_result(kind: type[BaseException]) -> CompactionResult:
    said = (result for answer, result in _RESULT_BY_ERROR.items() if issubclass(kind, answer))
    return next(said, CompactionResult.FAILED)

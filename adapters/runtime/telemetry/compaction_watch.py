"""Makes of one compaction a span, with one below it for each summariser that is tried."""

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
from ....domain.hooks import Happening, Moment
from ...storage.view_reader import ViewReader
from ..compaction.order import Order
from ..compaction.outcome import Outcome
from ..compaction.watch import Watch
from .current_span import Attributes, CurrentSpan, known
from .instruments import instruments, tracer
from .summary_span import SummarySpan
from .unharmed import unharmed


class Result(StrEnum):
    """What became of a compaction."""

    COMPACTED = "compacted"
    PREPARED = "prepared"
    """A boundary was recorded, and waits for its activation."""
    DONE_BEFORE = "done_before"
    """Another run had the same idempotency key."""
    NO_NEED = "no_need"
    NOTHING_TO_GAIN = "nothing_to_gain"
    VETOED = "vetoed"
    OVERTAKEN = "overtaken"
    """Others decided meanwhile."""
    LEASE_HELD = "lease_held"
    """Another worker is at it."""
    LEASE_LOST = "lease_lost"
    """Another worker has taken over: what was written is not used."""
    CANCELLED = "cancelled"
    FAILED = "failed"


ANSWERS: dict[type[BaseException], Result] = {
    NothingToCompactError: Result.NOTHING_TO_GAIN,
    CompactionVetoedError: Result.VETOED,
    StalePlanError: Result.OVERTAKEN,
    LeaseHeldError: Result.LEASE_HELD,
    LeaseLostError: Result.LEASE_LOST,
    CompactionCancelledError: Result.CANCELLED,
}
"""What is raised to say what became of it; all else says that something is wrong."""


class CompactionWatch(Watch):
    """The span and the metrics of one compaction.

    Its span and its summarisers' are the current ones of the thread that compacts while they last,
    so that what others trace meanwhile, hooks and providers' clients, comes to stand below them.
    """

    def __init__(self, reader: ViewReader, order: Order) -> None:
        self._reader = reader
        self._order = order
        self._result = Result.FAILED
        self._was_planned = self._was_recorded = False
        self._span: CurrentSpan | None = None
        self._summary: SummarySpan | None = None

    def __enter__(self) -> Self:
        with unharmed("a compaction"):
            self._instruments = instruments()
            self._tracer = tracer()
            self._span = CurrentSpan(self._tracer, "cutbank.compact", self._asked)
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
            self._summary.cancelled()
        self._summary_ends()
        with unharmed("a compaction"):
            wrong = None
            if kind is not None:
                self._result = _result_of(kind)
                wrong = kind.__qualname__ if self._result is Result.FAILED else None
            result: Attributes = {"cutbank.compaction.outcome": self._result.value}
            self._span.add(result)
            try:
                # While it is current: what is measured leads to an example of it.
                duration = self._instruments.compaction_duration
                duration.record(self._span.took, known(self._why | result))
            finally:
                self._span.end(wrong)

    def __call__(self, happening: Happening) -> None:
        if self._span is None:
            return
        with unharmed(f"{happening.moment} of a compaction"):
            self._tell(self._span, happening)

    def ended_with(self, outcome: Outcome) -> Outcome:
        if self._was_recorded:
            self._result = Result.COMPACTED if self._order.activate else Result.PREPARED
        elif outcome.compacted:
            self._result = Result.DONE_BEFORE
        else:
            self._result = Result.OVERTAKEN if self._was_planned else Result.NO_NEED
        return outcome

    def _tell(self, span: CurrentSpan, happening: Happening) -> None:
        before, after = happening.before, happening.after
        match happening.moment:
            case Moment.PRE_COMPACT if before:
                self._was_planned = True
                span.add(
                    {
                        "cutbank.tokens.before": before.tokens,
                        "cutbank.blocks.before": before.blocks,
                    }
                )
            case Moment.SUMMARISING:
                self._summary_ends()
                self._summary = SummarySpan(self._tracer, self._instruments, happening.summariser)
            case Moment.REJECTED if self._summary:
                self._summary.rejected(happening)
            case Moment.SUMMARISED if self._summary:
                self._summary.accepted(happening)
                self._summary_ends()
            case Moment.RECORDED if before and after:
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
                self._instruments.tokens_saved.add(saved, known(self._why))
            case _:
                pass

    def _summary_ends(self) -> None:
        if (summary := self._summary) is not None:
            self._summary = None
            with unharmed("a summariser"):
                summary.end()

    @property
    def _asked(self) -> Attributes:
        return self._why | {
            "gen_ai.conversation.id": self._reader.key,
            "cutbank.namespace": self._reader.namespace,
            "cutbank.lineage": self._reader.lineage,
            "cutbank.limit": self._order.limit,
        }

    @property
    def _why(self) -> Attributes:
        return {
            "cutbank.trigger": self._order.trigger.value,
            "cutbank.policy": self._order.policy.name,
        }


def _result_of(kind: type[BaseException]) -> Result:
    said = (result for answer, result in ANSWERS.items() if issubclass(kind, answer))
    return next(said, Result.FAILED)

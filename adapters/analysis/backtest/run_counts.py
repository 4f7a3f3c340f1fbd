"""Counts the calls and compactions of one replay as they happen."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....domain.backtest.billing import PricedCall
from ....projections.replay.recording import RecordedCall, Recording
from ....projections.replay.replayed_call import ReplayCompaction, ReplayedCall
from ....projections.replay.session_time import SessionTime
from .token_results import RecordedAnswer


@dataclass
class RunCounts:
    """The counts of a cell's calls and compactions, without fidelity and prices."""

    recorded_answers: Sequence[RecordedAnswer]
    triggers: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    calls: list[PricedCall] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    compactions: int = 0
    futile: int = 0
    refused: int = 0
    broken: int = 0
    orphaned: int = 0
    stood_in: int = 0

    def count_calls(self, served: Iterable[ReplayedCall]) -> Iterator[ReplayedCall]:
        for one in served:
            self._count(one)
            yield one

    def to_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a cell."""
        context = tuple(call.prompt for call in self.calls)
        return {
            "calls": len(self.calls),
            "compactions": self.compactions,
            "by_trigger": dict(sorted(self.triggers.items())),
            "futile": self.futile,
            "refused": self.refused,
            "broken": self.broken,
            "orphaned": self.orphaned,
            "repairs": dict(sorted(self.repairs.items())),
            "stood_in": self.stood_in,
            "peak_tokens": max(context, default=0),
            "context": context,
            "boundaries": tuple(self.boundaries),
        }

    def _count(self, served: ReplayedCall) -> None:
        for compacted in served.compactions:
            self._count_compaction(compacted)
        if served.compactions:
            self.boundaries.append(served.call.number)
        self.futile += len(served.futile_compactions)
        self.refused += served.is_refused
        self.calls.append(self._price(served))

    def _count_compaction(self, compacted: ReplayCompaction) -> None:
        self.compactions += 1
        self.triggers[str(compacted.boundary.trigger)] += 1
        self.repairs.update(str(repair.rule) for repair in compacted.repairs)
        self.broken += bool(compacted.orphaned_calls)
        self.orphaned += len(compacted.orphaned_calls)
        self.stood_in += bool(compacted.refused_drafts)

    def _price(self, served: ReplayedCall) -> PricedCall:
        answered = self.recorded_answers[len(self.calls)]
        bought = sum(one.summary_input_tokens for one in served.compactions)
        wrote = sum(
            one.summary.tokens
            for one in served.compactions
            if one.summary_input_tokens and one.summary
        )
        return answered.price(served.tokens, served.unchanged, bought, wrote)


def read_recorded_answers(recording: Recording) -> Iterator[RecordedAnswer]:
    """Yield the part of each call that is the same under any setup.

    The time of a call is that of the newest event it sees that has a time. The last event is often
    the record of the call before, which has no time in an import.
    """
    time, calibration = SessionTime(recording), recording.calibration
    before = None
    for call in recording.calls:
        cache = calibration.cache_reports[call.number - 1] if calibration else None
        now = time.advance(call.last_seen_position)
        gap = None if before is None else (now - before).total_seconds()
        before = now if time.is_told else None
        model = call.report.model if call.report else None
        yield RecordedAnswer(_output_tokens(recording, call), gap, cache, model)


def _output_tokens(recording: Recording, call: RecordedCall) -> int:
    """Return the tokens that the model wrote: as reported, else as estimated."""
    usage = call.report.usage if call.report else None
    if usage is not None and usage.output is not None:
        return usage.output
    if call.report is None and recording.calibration is not None:
        return 0  # the report of another call includes it
    return sum(recording.get_event(position).tokens for position in call.answer)

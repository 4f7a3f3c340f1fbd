"""Counts the calls and compactions of one replay as they happen, with what each call is billed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....domain.backtest.billing import CacheReport, PricedCall
from ....projections.replay.recording import RecordedCall, Recording, SessionTime
from ....projections.replay.replay import ReplayCompaction, ReplayedCall


class RecordedAnswer(NamedTuple):
    """The part of a recorded call that is the same under any setup."""

    output_tokens: int
    """Tokens of the answer."""
    gap_s: float | None
    """Seconds since the call before, if known."""
    cache: CacheReport | None = None
    model: str | None = None

    def price(
        self, prompt: int, unchanged: int, summary_input: int = 0, summary_output: int = 0
    ) -> PricedCall:
        """Return the billed tokens of such a call."""
        if self.cache is not None and self.cache.is_empty:
            # A call without prompt tokens when recorded has none under any setup.
            prompt = unchanged = 0
        return PricedCall(
            prompt=prompt,
            unchanged=unchanged,
            output=self.output_tokens,
            gap_s=self.gap_s,
            summary_input=summary_input,
            summary_output=summary_output,
            cache=self.cache,
            model=self.model,
        )


@dataclass
class RunCounts:
    """The counts of a cell's calls and compactions, without fidelity and prices."""

    recorded_answers: Sequence[RecordedAnswer]
    by_trigger: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    calls: list[PricedCall] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    compactions: int = 0
    futile: int = 0
    refused: int = 0
    broken: int = 0
    orphaned: int = 0
    stood_in: int = 0
    largest_prompt: int = 0

    def count_calls(self, served: Iterable[ReplayedCall]) -> Iterator[ReplayedCall]:
        for one in served:
            self._count(one)
            yield one

    def to_fields(self) -> dict[str, Any]:
        """Return the counts as fields of a cell."""
        context = tuple(call.prompt for call in self.calls)
        counts = ("compactions", "futile", "refused", "broken", "orphaned", "stood_in")
        return {
            **{name: getattr(self, name) for name in counts},
            "calls": len(self.calls),
            "by_trigger": dict(sorted(self.by_trigger.items())),
            "repairs": dict(sorted(self.repairs.items())),
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
        self.largest_prompt = max(self.largest_prompt, served.tokens)
        by_model = [one for one in served.compactions if one.summary_input_tokens]
        self.calls.append(
            self.recorded_answers[len(self.calls)].price(
                served.tokens,
                served.unchanged,
                sum(one.summary_input_tokens for one in by_model),
                sum(one.summary.tokens for one in by_model if one.summary),
            )
        )

    def _count_compaction(self, compacted: ReplayCompaction) -> None:
        self.compactions += 1
        self.by_trigger[str(compacted.boundary.trigger)] += 1
        self.repairs.update(str(repair.rule) for repair in compacted.repairs)
        self.broken += bool(compacted.orphaned_calls)
        self.orphaned += len(compacted.orphaned_calls)
        self.stood_in += bool(compacted.refused_drafts)


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
        yield RecordedAnswer(_count_output(recording, call), gap, cache, model)


def _count_output(recording: Recording, call: RecordedCall) -> int:
    """Return the tokens that the model wrote: as reported, else as estimated."""
    usage = call.report.usage if call.report else None
    if usage is not None and usage.output is not None:
        return usage.output
    if call.report is None and recording.calibration is not None:
        return 0  # the report of another call includes it
    return sum(recording.get_event(position).tokens for position in call.answer)

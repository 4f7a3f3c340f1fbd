"""Counts what happens in one replay, call by call, as the calls go by."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....domain.backtest.billing import PricedCall
from ....projections.replay.recording import Call, Recording
from ....projections.replay.served import Compacted, Served
from ....projections.replay.session_time import SessionTime
from .by_tokens import Answered


@dataclass
class Tally:
    """What a cell says of its calls and compactions; fidelity and prices come later."""

    answered: Sequence[Answered]
    """Of each call, in order."""
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

    def counting(self, served: Iterable[Served]) -> Iterator[Served]:
        """Each call, counted and handed on."""
        for one in served:
            self._count(one)
            yield one

    def as_fields(self) -> dict[str, Any]:
        """As a cell has them."""
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

    def _count(self, served: Served) -> None:
        for compacted in served.compactions:
            self._count_compaction(compacted)
        if served.compactions:
            self.boundaries.append(served.call.number)
        self.futile += len(served.futile)
        self.refused += served.is_refused
        self.calls.append(self._priced(served))

    def _count_compaction(self, compacted: Compacted) -> None:
        self.compactions += 1
        self.triggers[str(compacted.boundary.trigger)] += 1
        self.repairs.update(str(repair.rule) for repair in compacted.repairs)
        self.broken += bool(compacted.orphaned)
        self.orphaned += len(compacted.orphaned)
        self.stood_in += bool(compacted.refused)

    def _priced(self, served: Served) -> PricedCall:
        answered = self.answered[len(self.calls)]
        bought = sum(one.bought for one in served.compactions)
        wrote = sum(one.summary.tokens for one in served.compactions if one.bought and one.summary)
        return answered.priced(served.tokens, served.unchanged, bought, wrote)


def answered_in(recording: Recording) -> Iterator[Answered]:
    """What each call of a session has under any setup.

    A call was made when the newest was said of what it sees and a time is told of. What stands last
    is often the record of the call before, of which an import knows no time.
    """
    time, calibration = SessionTime(recording), recording.calibration
    before = None
    for call in recording.calls:
        cache = calibration.cached[call.number - 1] if calibration else None
        now = time.advance(call.sees)
        gap = None if before is None else (now - before).total_seconds()
        before = now if time.is_told else None
        model = call.reported.model if call.reported else None
        yield Answered(_output(recording, call), gap, cache, model)


def _output(recording: Recording, call: Call) -> int:
    """Tokens that the model wrote: as its provider reported, else as estimated."""
    usage = call.reported.usage if call.reported else None
    if usage is not None and usage.output is not None:
        return usage.output
    if call.reported is None and recording.calibration is not None:
        return 0  # it is in the report of another call
    return sum(recording.at(position).tokens for position in call.answer)

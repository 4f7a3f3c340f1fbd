"""What became of every block at a coordinate, and since when: a few sets, however many blocks."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...domain.coverage import Fate
from ...domain.ranges import Ranges
from ...domain.session_events import BlocksRetracted
from ..fate_ranges import fates_of
from .eras import Era


@dataclass(frozen=True, slots=True)
class Became:
    """What became of one block."""

    fate: Fate | None
    """None where the boundary forgot it, which `verify` reports."""
    since: int | None = None
    """The session's position from which it has been so; None where it was so from the first."""
    boundary: int | None = None
    """The boundary that made it so; of what is summarised, the first whose summary stood for it
    without a break."""


@dataclass(frozen=True, slots=True)
class _Span:
    first: int
    last: int
    became: Became


class FateBook:
    """The fates of all blocks of a session at one coordinate."""

    def __init__(
        self, eras: Sequence[Era], retractions: Sequence[BlocksRetracted], position: int
    ) -> None:
        self.now = eras[-1]
        spans = [*_taken_back(retractions), *_decided(eras, retractions, position)]
        self._spans = sorted(spans, key=lambda span: span.first)

    def of(self, position: int) -> Became:
        """What became of the block at a position."""
        index = bisect_right(self._spans, position, key=lambda span: span.first) - 1
        if index >= 0 and position <= self._spans[index].last:
            return self._spans[index].became
        return Became(None)


def _spans(positions: Ranges, became: Became) -> Iterator[_Span]:
    for first, last in positions.runs:
        yield _Span(first, last, became)


def _taken_back(retractions: Sequence[BlocksRetracted]) -> Iterator[_Span]:
    known = Ranges()
    for one in retractions:
        became = Became(Fate.RETRACTED, since=one.originator_version)
        yield from _spans(one.positions - known, became)
        known |= one.positions


def _decided(
    eras: Sequence[Era], retractions: Sequence[BlocksRetracted], position: int
) -> Iterator[_Span]:
    retracted = Ranges()
    for one in retractions:
        retracted |= one.positions
    by_era = [fates_of(era.boundary, era.summary, retracted, position) for era in eras]
    for fate, now in by_era[-1].items():
        if fate is not Fate.RETRACTED:
            yield from _since(fate, now, eras, by_era)


def _since(
    fate: Fate, now: Ranges, eras: Sequence[Era], by_era: Sequence[Mapping[Fate, Ranges]]
) -> Iterator[_Span]:
    """Blocks of one fate, each with the era since which it has had it without a break."""
    remaining = now
    for index in range(len(eras) - 1, 0, -1):
        stays = remaining & by_era[index - 1].get(fate, Ranges())
        era = eras[index]
        yield from _spans(remaining - stays, Became(fate, era.start, era.number))
        remaining = stays
        if not remaining:
            break
    yield from _spans(remaining, Became(fate))

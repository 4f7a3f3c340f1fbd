"""Maps positions to streams when one stream continues another, as forks and lineages do."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from ....domain.ranges import Ranges, Run


@dataclass(frozen=True, slots=True)
class StreamSegment:
    """Positions `first` to `last` are in the stream `originator_id`."""

    originator_id: UUID
    first: int
    last: int | None
    """None in the newest segment, which still grows."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The stream of each position, oldest segment first."""

    segments: tuple[StreamSegment, ...]

    @classmethod
    def start(cls, originator_id: UUID) -> "Chain":
        """Return the chain of a stream that continues no other."""
        return cls((StreamSegment(originator_id, 1, None),))

    def cut_after(self, position: int) -> "Chain":
        """Return the part that a stream which leaves this one at `position` shares."""
        return Chain(
            tuple(
                replace(one, last=position if one.last is None else min(position, one.last))
                for one in self.segments
                if one.first <= position
            )
        )

    def continue_with(self, originator_id: UUID, after: int) -> "Chain":
        """Return this chain up to `after`, followed by another stream."""
        return Chain(
            (*self.cut_after(after).segments, StreamSegment(originator_id, after + 1, None))
        )

    def find_stream(self, position: int) -> UUID:
        for segment in reversed(self.segments):
            if position >= segment.first:
                return segment.originator_id
        raise ValueError(f"positions begin at 1, not {position}")

    def split_by_stream(self, positions: Ranges) -> Iterator[tuple[UUID, tuple[Run, ...]]]:
        """Yield the positions by stream, in order."""
        for segment in self.segments:
            last = 2**62 if segment.last is None else segment.last
            inside = positions & Ranges.span(segment.first, last)
            if inside:
                yield segment.originator_id, inside.runs

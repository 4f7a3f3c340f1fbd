"""A stream that continues another: a fork's positions, a lineage's versions."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ....domain.ranges import Ranges, Run


@dataclass(frozen=True, slots=True)
class Segment:
    """Positions `first` to `last` are found in stream `originator_id`."""

    originator_id: UUID
    first: int
    last: int | None
    """None in the newest segment, which still grows."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Which stream holds which position, oldest segment first."""

    segments: tuple[Segment, ...]

    @classmethod
    def beginning(cls, originator_id: UUID) -> "Chain":
        """The chain of a stream that continues nothing."""
        return cls((Segment(originator_id, 1, None),))

    def up_to(self, position: int) -> "Chain":
        """What a stream that leaves this one at `position` shares of it."""
        return Chain(
            tuple(
                Segment(
                    segment.originator_id,
                    segment.first,
                    position if segment.last is None else min(position, segment.last),
                )
                for segment in self.segments
                if segment.first <= position
            )
        )

    def continued_by(self, originator_id: UUID, after: int) -> "Chain":
        """This chain up to `after`, and then the positions of another stream."""
        return Chain((*self.up_to(after).segments, Segment(originator_id, after + 1, None)))

    def holding(self, position: int) -> UUID:
        """The stream that holds a position."""
        for segment in reversed(self.segments):
            if position >= segment.first:
                return segment.originator_id
        raise ValueError(f"positions begin at 1, not {position}")

    def split(self, positions: Ranges) -> Iterator[tuple[UUID, tuple[Run, ...]]]:
        """The positions by stream, in order."""
        for segment in self.segments:
            last = 2**62 if segment.last is None else segment.last
            inside = positions & Ranges.span(segment.first, last)
            if inside:
                yield segment.originator_id, inside.runs

"""Finds the blocks of a recording that left with a boundary."""

from ...domain.blocks import UNSENT_KINDS
from ...domain.compaction_events import CompactBoundary
from ...domain.ranges import Ranges
from ...domain.session_events import BlockAppended, BlocksRetracted
from .recording import Recording


class DepartedBlocks:
    """Finds what a view contained before a boundary and not after it."""

    def __init__(self, recording: Recording) -> None:
        self._blocks = Ranges.of(
            one.position
            for one in recording.log
            if one.tokens
            and not (isinstance(one.event, BlockAppended) and one.event.block.kind in UNSENT_KINDS)
        )
        self._retracted = [
            (one.position, one.event.positions)
            for one in recording.log
            if isinstance(one.event, BlocksRetracted)
        ]

    def find_departed(self, before: CompactBoundary | None, boundary: CompactBoundary) -> Ranges:
        """Return the blocks that leave with `boundary` from a view that began at `before`."""
        stood = Ranges.span(before.after + 1 if before else 1, boundary.after)
        left = (stood | before.kept if before else stood) - boundary.kept
        for at, positions in self._retracted:
            if at <= boundary.after:
                left -= positions
        return left & self._blocks

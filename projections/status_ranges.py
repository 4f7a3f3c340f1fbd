"""Finds the status of all blocks together, in ranges."""

from collections.abc import Mapping

from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.ranges import Ranges
from ..domain.settlement import BlockStatus


def compute_status_ranges(
    boundary: CompactBoundary | None, summary: Summary | None, retracted: Ranges, upto: int
) -> Mapping[BlockStatus, Ranges]:
    """Return the positions up to `upto` by status; positions without a status are in none.

    As in a boundary, the ranges may include positions that hold no block.
    """
    every = Ranges.span(1, upto)
    if boundary is None:
        return _split_by_claims(
            [(BlockStatus.RETRACTED, retracted), (BlockStatus.VISIBLE, every)], every
        )
    replaced = Ranges.of(replacement.position for replacement in boundary.replacements)
    decided = Ranges.span(1, boundary.after)
    return _split_by_claims(
        [
            (BlockStatus.RETRACTED, retracted),
            (BlockStatus.VISIBLE, every - decided),
            (BlockStatus.PINNED, boundary.pinned),
            (BlockStatus.HIDDEN, boundary.hidden | replaced),
            (BlockStatus.TRIMMED, Ranges.of(trim.position for trim in boundary.trims)),
            (BlockStatus.SUMMARIZED, summary.covers if summary else Ranges()),
            (BlockStatus.VISIBLE, boundary.kept),
        ],
        every,
    )


def _split_by_claims(
    claims: list[tuple[BlockStatus, Ranges]], every: Ranges
) -> dict[BlockStatus, Ranges]:
    """Assign each position to the first claim that includes it."""
    fates: dict[BlockStatus, Ranges] = {}
    for fate, claimed in claims:
        taken = every & claimed
        if taken:
            fates[fate] = fates.get(fate, Ranges()) | taken
            every -= taken
    return fates

"""The fates of all blocks at once: `coverage.fate`, by ranges and not block by block."""

from collections.abc import Mapping

from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.coverage import Fate
from ..domain.ranges import Ranges


def fates_of(
    boundary: CompactBoundary | None, summary: Summary | None, retracted: Ranges, upto: int
) -> Mapping[Fate, Ranges]:
    """Which positions up to `upto` have which fate; what has none is in none of them.

    Positions that hold no block are among them, as they are among a boundary's own.
    """
    every = Ranges.span(1, upto)
    if boundary is None:
        return _parted([(Fate.RETRACTED, retracted), (Fate.VISIBLE, every)], every)
    replaced = Ranges.of(replacement.position for replacement in boundary.replacements)
    decided = Ranges.span(1, boundary.after)
    return _parted(
        [
            (Fate.RETRACTED, retracted),
            (Fate.VISIBLE, every - decided),
            (Fate.PINNED, boundary.pinned),
            (Fate.HIDDEN, boundary.hidden | replaced),
            (Fate.TRIMMED, Ranges.of(trim.position for trim in boundary.trims)),
            (Fate.SUMMARISED, summary.covers if summary else Ranges()),
            (Fate.VISIBLE, boundary.kept),
        ],
        every,
    )


def _parted(claims: list[tuple[Fate, Ranges]], every: Ranges) -> dict[Fate, Ranges]:
    """Each position goes to the first that claims it."""
    fates: dict[Fate, Ranges] = {}
    for fate, claimed in claims:
        taken = every & claimed
        if taken:
            fates[fate] = fates.get(fate, Ranges()) | taken
            every -= taken
    return fates

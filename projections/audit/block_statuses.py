"""Finds the status of every block at a coordinate, and since when, in ranges."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...domain.compaction_events import CompactBoundary, Summary
from ...domain.ranges import Ranges
from ...domain.session_events import BlocksRetracted
from ...domain.settlement import BlockStatus
from .view_epochs import ViewEpoch


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


@dataclass(frozen=True, slots=True)
class StatusSince:
    """The status of one block, and since when it has it."""

    status: BlockStatus | None
    """None if the boundary forgot it, which `verify` reports."""
    since: int | None = None
    """The session's position from which it has been so; None if it always was."""
    boundary: int | None = None
    """The boundary that made it so; for a summarized block, the first of an unbroken series."""


@dataclass(frozen=True, slots=True)
class _Span:
    first: int
    last: int
    status: StatusSince


class StatusIndex:
    """The status of all blocks of a session at one coordinate."""

    def __init__(
        self, epochs: Sequence[ViewEpoch], retractions: Sequence[BlocksRetracted], position: int
    ) -> None:
        self.now = epochs[-1]
        spans = [
            *_iter_retracted_spans(retractions),
            *_iter_decided_spans(epochs, retractions, position),
        ]
        self._spans = sorted(spans, key=lambda span: span.first)

    def find(self, position: int) -> StatusSince:
        index = bisect_right(self._spans, position, key=lambda span: span.first) - 1
        if index >= 0 and position <= self._spans[index].last:
            return self._spans[index].status
        return StatusSince(None)


def _iter_spans(positions: Ranges, status: StatusSince) -> Iterator[_Span]:
    for first, last in positions.runs:
        yield _Span(first, last, status)


def _iter_retracted_spans(retractions: Sequence[BlocksRetracted]) -> Iterator[_Span]:
    known = Ranges()
    for one in retractions:
        became = StatusSince(BlockStatus.RETRACTED, since=one.originator_version)
        yield from _iter_spans(one.positions - known, became)
        known |= one.positions


def _iter_decided_spans(
    epochs: Sequence[ViewEpoch], retractions: Sequence[BlocksRetracted], position: int
) -> Iterator[_Span]:
    retracted = Ranges()
    for one in retractions:
        retracted |= one.positions
    by_era = [
        compute_status_ranges(era.boundary, era.summary, retracted, position) for era in epochs
    ]
    for fate, now in by_era[-1].items():
        if fate is not BlockStatus.RETRACTED:
            yield from _iter_spans_since(fate, now, epochs, by_era)


def _iter_spans_since(
    status: BlockStatus,
    now: Ranges,
    epochs: Sequence[ViewEpoch],
    by_epoch: Sequence[Mapping[BlockStatus, Ranges]],
) -> Iterator[_Span]:
    """Yield the blocks of one status, each with the epoch since which it has had that status."""
    remaining = now
    for index in range(len(epochs) - 1, 0, -1):
        stays = remaining & by_epoch[index - 1].get(status, Ranges())
        era = epochs[index]
        yield from _iter_spans(remaining - stays, StatusSince(status, era.start, era.number))
        remaining = stays
        if not remaining:
            break
    yield from _iter_spans(remaining, StatusSince(status))

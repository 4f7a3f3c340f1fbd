"""Finds the status of every block at a coordinate, and since when, from the view epochs."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    Summary,
)
from ..domain.event import Event
from ..domain.ranges import Ranges
from ..domain.session_events import BlocksRetracted
from ..domain.settlement import BlockStatus

RecordedBoundary = tuple[CompactBoundary, Summary | None]


def collect_boundaries(decisions: Iterable[Event]) -> dict[int, RecordedBoundary]:
    """Return the boundaries of a lineage with their summaries, by number."""
    found: dict[int, RecordedBoundary] = {}
    for event in decisions:
        if isinstance(event, CompactBoundary):
            found[event.originator_version] = event, None
        elif isinstance(event, Summary) and event.boundary in found:
            found[event.boundary] = found[event.boundary][0], event
    return found


@dataclass(frozen=True, slots=True)
class ViewEpoch:
    """From the session's position `start` on, views begin at `boundary`."""

    start: int
    boundary: CompactBoundary | None = None
    summary: Summary | None = None

    @property
    def number(self) -> int | None:
        """The boundary's name, which is its version in the lineage."""
        return self.boundary.originator_version if self.boundary else None


@dataclass(frozen=True, slots=True)
class StatusSince:
    """The status of one block, and since when it has it."""

    status: BlockStatus | None
    """None if the boundary forgot it, which `verify` reports."""
    since: int | None = None
    """The session's position from which it has been so; None if it always was."""
    boundary: int | None = None
    """The boundary that made it so; for a summarized block, the first of an unbroken series."""


class StatusIndex:
    """The status of all blocks of a session at one coordinate."""

    def __init__(
        self, epochs: Sequence[ViewEpoch], retractions: Sequence[BlocksRetracted], position: int
    ) -> None:
        spans = _iter_spans(epochs, retractions, position)
        runs = [(first, last, since) for where, since in spans for first, last in where.runs]
        self._runs = sorted(runs, key=lambda run: run[0])

    def find(self, position: int) -> StatusSince:
        index = bisect_right(self._runs, position, key=lambda run: run[0]) - 1
        if index >= 0 and position <= self._runs[index][1]:
            return self._runs[index][2]
        return StatusSince(None)


def _iter_spans(
    epochs: Sequence[ViewEpoch], retractions: Sequence[BlocksRetracted], position: int
) -> Iterator[tuple[Ranges, StatusSince]]:
    retracted = Ranges()
    for one in retractions:
        since = StatusSince(BlockStatus.RETRACTED, since=one.originator_version)
        yield one.positions - retracted, since
        retracted |= one.positions
    by_epoch = [
        compute_status_ranges(epoch.boundary, epoch.summary, retracted, position)
        for epoch in epochs
    ]
    for status, now in by_epoch[-1].items():
        remaining = Ranges() if status is BlockStatus.RETRACTED else now
        # Back in time: what had another status before an epoch has had this one since then.
        for epoch, before in zip(epochs[:0:-1], by_epoch[-2::-1], strict=True):
            stays = remaining & before.get(status, Ranges())
            yield remaining - stays, StatusSince(status, epoch.start, epoch.number)
            remaining = stays
            if not remaining:
                break
        yield remaining, StatusSince(status)


def list_view_epochs(
    decisions: Sequence[Event], retractions: Sequence[BlocksRetracted], position: int
) -> tuple[ViewEpoch, ...]:
    """Return the view epochs up to `position`, oldest first; the first begins with the log.

    An epoch begins at every switch of boundary, and at every retraction that undoes one.
    `decisions` are all events of the lineage up to the wanted version, including inherited ones;
    `retractions` those of the session up to `position`.
    """
    boundaries = collect_boundaries(decisions)
    switches = [
        (one.effective_from, one.boundary if isinstance(one, BoundaryActivated) else one.to or 0)
        for one in decisions
        if isinstance(one, BoundaryActivated | CompactionReverted)
    ]
    undone_at = {
        number: _find_undoing(boundary, summary, retractions)
        for number, (boundary, summary) in boundaries.items()
    }
    epochs = [ViewEpoch(1)]
    for index, (start, active) in enumerate(switches):
        if start > position:
            break
        end = min([*(at for at, _ in switches[index + 1 : index + 2]), position + 1])
        at: float = start
        number = active
        while at < end:
            # The newest boundary beneath it that no retraction has undone.
            while number and undone_at.get(number, inf) <= at:
                number = boundaries[number][0].previous or 0
            _add_epoch(epochs, ViewEpoch(int(at), *boundaries.get(number, (None, None))))
            at = undone_at.get(number, inf)
    return tuple(epochs)


def _find_undoing(
    boundary: CompactBoundary, summary: Summary | None, retractions: Sequence[BlocksRetracted]
) -> float:
    """Return the position of the first retraction of something that the summary covers."""
    if summary is None:
        return inf
    gone = summary.covers | boundary.hidden
    for one in retractions:
        if one.originator_version > boundary.after and (
            one.positions & summary.covers or Ranges.of(one.reopened.values()) & gone
        ):
            return one.originator_version
    return inf


def _add_epoch(epochs: list[ViewEpoch], epoch: ViewEpoch) -> None:
    if epoch.number == epochs[-1].number:
        return
    # Of several switches at one position, the last one applies.
    if epoch.start == epochs[-1].start:
        epochs.pop()
    if not epochs or epoch.number != epochs[-1].number:
        epochs.append(epoch)


def compute_status_ranges(
    boundary: CompactBoundary | None, summary: Summary | None, retracted: Ranges, upto: int
) -> Mapping[BlockStatus, Ranges]:
    """Return the positions up to `upto` by status; positions without a status are in none.

    As in a boundary, the ranges may include positions that hold no block.
    """
    rest = Ranges.span(1, upto)
    claims = [(BlockStatus.RETRACTED, retracted), (BlockStatus.VISIBLE, rest)]
    if boundary is not None:
        replaced = Ranges.of(replacement.position for replacement in boundary.replacements)
        claims = [
            (BlockStatus.RETRACTED, retracted),
            (BlockStatus.VISIBLE, rest - Ranges.span(1, boundary.after)),
            (BlockStatus.PINNED, boundary.pinned),
            (BlockStatus.HIDDEN, boundary.hidden | replaced),
            (BlockStatus.TRIMMED, Ranges.of(trim.position for trim in boundary.trims)),
            (BlockStatus.SUMMARIZED, summary.covers if summary else Ranges()),
            (BlockStatus.VISIBLE, boundary.kept),
        ]
    statuses: dict[BlockStatus, Ranges] = {}
    for status, claimed in claims:
        # The first claim of a position counts.
        if taken := rest & claimed:
            statuses[status] = statuses.get(status, Ranges()) | taken
            rest -= taken
    return statuses


def find_status(statuses: Mapping[BlockStatus, Ranges], position: int) -> BlockStatus | None:
    """Return the status of a block; None if the boundary forgot it, which `verify` reports."""
    return next((status for status, where in statuses.items() if position in where), None)

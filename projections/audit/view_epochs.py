"""Finds the view epochs of a lineage: every switch of boundary, and every rewind before one."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionReverted,
    Summary,
)
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.session_events import BlocksRetracted


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


def list_view_epochs(
    decisions: Iterable[Event], retractions: Sequence[BlocksRetracted], position: int
) -> tuple[ViewEpoch, ...]:
    """Return the view epochs up to `position`, oldest first; the first begins with the log.

    `decisions` are all events of the lineage up to the wanted version, including inherited ones;
    `retractions` those of the session up to `position`.
    """
    return _EpochBuilder(decisions, retractions, position).build()


def find_view_epoch(epochs: Sequence[ViewEpoch], position: int) -> ViewEpoch:
    return epochs[bisect_right(epochs, position, key=lambda era: era.start) - 1]


class _EpochBuilder:
    def __init__(
        self, decisions: Iterable[Event], retractions: Sequence[BlocksRetracted], position: int
    ) -> None:
        self.retractions = [one for one in retractions if one.originator_version <= position]
        self.position = position
        self.boundaries: dict[int, CompactBoundary] = {}
        self.summaries: dict[int, Summary] = {}
        self.switches: list[tuple[int, int]] = []
        """The position of each switch, and its boundary."""
        self._undone: dict[int, float] = {}
        for event in decisions:
            match event:
                case CompactBoundary():
                    self.boundaries[event.originator_version] = event
                case Summary(boundary=boundary):
                    self.summaries[boundary] = event
                case (
                    BoundaryActivated(boundary=active, effective_from=start)
                    | CompactionReverted(to=active, effective_from=start)
                ):
                    self.switches.append((start, active or 0))
                case _:
                    pass

    def build(self) -> tuple[ViewEpoch, ...]:
        eras = [ViewEpoch(1)]
        for index, (start, active) in enumerate(self.switches):
            if start > self.position:
                break
            following = self.switches[index + 1 : index + 2]
            end = min(following[0][0] if following else inf, self.position + 1)
            at: float = start
            while at < end:
                boundary = self._find_standing(active, at)
                self._add(eras, ViewEpoch(int(at), *self._find_boundary(boundary)))
                at = self._find_undone_at(boundary)
        return tuple(eras)

    def _add(self, epochs: list[ViewEpoch], epoch: ViewEpoch) -> None:
        if epoch.number == epochs[-1].number:
            return
        # Of several switches at one position, the last one applies.
        if epoch.start == epochs[-1].start:
            epochs.pop()
        if not epochs or epoch.number != epochs[-1].number:
            epochs.append(epoch)

    def _find_boundary(self, boundary: int) -> tuple[CompactBoundary | None, Summary | None]:
        return self.boundaries.get(boundary), self.summaries.get(boundary)

    def _find_standing(self, boundary: int, position: float) -> int:
        """Return the boundary, or the newest one beneath it that no retraction has undone."""
        while boundary and self._find_undone_at(boundary) <= position:
            boundary = self.boundaries[boundary].previous or 0
        return boundary

    def _find_undone_at(self, number: int) -> float:
        """Return the position of the first retraction of something that its summary covers."""
        if number not in self._undone:
            self._undone[number] = self._find_undoing(number)
        return self._undone[number]

    def _find_undoing(self, number: int) -> float:
        boundary, summary = self._find_boundary(number)
        if boundary is None or summary is None:
            return inf
        gone = summary.covers | boundary.hidden
        for one in self.retractions:
            if one.originator_version > boundary.after and (
                one.positions & summary.covers or Ranges.of(one.reopened.values()) & gone
            ):
                return one.originator_version
        return inf

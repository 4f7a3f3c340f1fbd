"""Since when views of a lineage begin where they do: every switch, and every rewind behind one."""

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
class Era:
    """From the session's position `start` on, views begin at `boundary`."""

    start: int
    boundary: CompactBoundary | None = None
    summary: Summary | None = None

    @property
    def number(self) -> int | None:
        """The boundary's name: its version in the lineage."""
        return self.boundary.originator_version if self.boundary else None


def eras_of(
    decisions: Iterable[Event], retractions: Sequence[BlocksRetracted], position: int
) -> tuple[Era, ...]:
    """The eras of views up to `position`, oldest first; the first begins with the log.

    `decisions` are all events of the lineage up to the version that is asked about, those that it
    inherits included; `retractions` those of the session up to `position`.
    """
    return _Eras(decisions, retractions, position).found()


def era_at(eras: Sequence[Era], position: int) -> Era:
    """The era that a view at a position is of."""
    return eras[bisect_right(eras, position, key=lambda era: era.start) - 1]


class _Eras:
    def __init__(
        self, decisions: Iterable[Event], retractions: Sequence[BlocksRetracted], position: int
    ) -> None:
        self.retractions = [one for one in retractions if one.originator_version <= position]
        self.position = position
        self.boundaries: dict[int, CompactBoundary] = {}
        self.summaries: dict[int, Summary] = {}
        self.switches: list[tuple[int, int]] = []
        """From which position on, and to which boundary."""
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

    def found(self) -> tuple[Era, ...]:
        eras = [Era(1)]
        for index, (start, active) in enumerate(self.switches):
            if start > self.position:
                break
            following = self.switches[index + 1 : index + 2]
            end = min(following[0][0] if following else inf, self.position + 1)
            at: float = start
            while at < end:
                boundary = self._standing(active, at)
                self._add(eras, Era(int(at), *self._said(boundary)))
                at = self._undone_at(boundary)
        return tuple(eras)

    def _add(self, eras: list[Era], era: Era) -> None:
        if era.number == eras[-1].number:
            return
        # Of several switches at one position, the last is what views have.
        if era.start == eras[-1].start:
            eras.pop()
        if not eras or era.number != eras[-1].number:
            eras.append(era)

    def _said(self, boundary: int) -> tuple[CompactBoundary | None, Summary | None]:
        return self.boundaries.get(boundary), self.summaries.get(boundary)

    def _standing(self, boundary: int, position: float) -> int:
        """The boundary, or the newest beneath it that no retraction has undone by then."""
        while boundary and self._undone_at(boundary) <= position:
            boundary = self.boundaries[boundary].previous or 0
        return boundary

    def _undone_at(self, number: int) -> float:
        """Where the first retraction stands that reached into what its summary stands for."""
        if number not in self._undone:
            self._undone[number] = self._undoing(number)
        return self._undone[number]

    def _undoing(self, number: int) -> float:
        boundary, summary = self._said(number)
        if boundary is None or summary is None:
            return inf
        gone = summary.covers | boundary.hidden
        for one in self.retractions:
            if one.originator_version > boundary.after and (
                one.positions & summary.covers or Ranges.of(one.reopened.values()) & gone
            ):
                return one.originator_version
        return inf

"""Places the decisions of a lineage in the session that they are about."""

from collections.abc import Iterable, Iterator

from ...domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionRequested,
    CompactionReverted,
)
from ...domain.event import Event
from .audit_entries import AuditedDecision


def place_decisions(decisions: Iterable[Event], position: int) -> Iterator[AuditedDecision]:
    """Yield each decision with the session's position at that time, as far as the event says.

    Clocks never order streams: an event without a position is placed with the one before it. No
    position exceeds `position`, where the audit ends.
    """
    place = 1
    for event in decisions:
        match event:
            case (
                CompactionRequested(after=at)
                | CompactBoundary(after=at)
                | CompactionFailed(after=at)
                | BoundaryActivated(effective_from=at)
                | CompactionReverted(effective_from=at)
            ):
                place = min(max(place, at), position)
            case _:
                pass
        yield AuditedDecision(event.originator_version, place, event)

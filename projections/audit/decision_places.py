"""Puts the decisions of a lineage where they fell in the session that they are about."""

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
    """Each with the position that the session was at, as far as the decision itself tells.

    Streams are never ordered by a clock: what tells no position stands with what came before it.
    None comes behind `position`, where the story ends.
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

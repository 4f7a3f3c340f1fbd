"""Compares views of a stored session: around a boundary, or between any two coordinates."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...domain.compaction import MAIN_LINEAGE
from ...domain.compaction_events import BoundaryActivated, CompactBoundary, Summary
from ...domain.errors import InvalidPositionError, InvalidSettingError, NotFoundError
from ...domain.token_estimate import PromptSizeChange, SizeBasis
from ...projections.history_view import HistoryView
from ...projections.lost_facts import SessionText
from ...projections.recorded_rows import make_session_rows
from ...projections.view_content import Coordinate
from ...projections.view_diff import ViewDiff, compare_views
from ..runtime.sessions.stored_session import StoredSession
from ..storage.compaction_sizes import measure_compactions
from ..storage.event_log.storage_errors import translate_storage_errors
from .run_replay import read_decisions, read_recording

REFERENCE_SYNTAX = "write [LINEAGE][@VERSION][#POSITION], as main@3#120, or recorded, or #120"
_REFERENCE = re.compile(
    r"(?P<lineage>.*?)(?:@(?P<version>[0-9]{1,15}))?(?:#(?P<position>last(?:-[0-9]+)?|[0-9]{1,15}))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ViewReference:
    """A reference to a view; None means the newest."""

    lineage: str = MAIN_LINEAGE
    version: int | None = None
    """Version 0 is a lineage without decisions: all of the log."""
    position: int | None = None

    @classmethod
    def parse(
        cls, text: str, lineage: str = MAIN_LINEAGE, position: Callable[[str], int] = int
    ) -> "ViewReference":
        """Parse a reference; `lineage` is used if the text names none.

        `position` parses the part after `#`. Raises InvalidPositionError.
        """
        found = _REFERENCE.fullmatch(text.strip())
        if found is None or not text.strip() or "#" in found["lineage"]:
            raise InvalidPositionError(f"{text!r} names no view: {REFERENCE_SYNTAX}")
        at = found["position"]
        return cls(
            lineage=found["lineage"] or lineage,
            version=int(found["version"]) if found["version"] else None,
            position=position(at) if at else None,
        )


def read_view_reference(
    session: StoredSession, named: str, lineage: str, position: Callable[[str], int] = int
) -> ViewReference:
    """Return the view reference of `named`; an existing lineage may have any name."""
    return (
        ViewReference(named)
        if named in session.log.lineages
        else ViewReference.parse(named, lineage, position)
    )


def read_fact_log(session: StoredSession) -> SessionText:
    """Return the whole session's text, to look facts up in."""
    return SessionText(make_session_rows(read_recording(session)))


def diff(
    session: StoredSession,
    boundary: int | None = None,
    *,
    lineage: str = MAIN_LINEAGE,
    before: str | ViewReference | None = None,
    after: str | ViewReference | None = None,
    log: SessionText | None = None,
) -> ViewDiff:
    """Return what left the view at a boundary, what replaced it, and which facts are gone.

    Without `boundary`, the newest boundary of `lineage` is used; one that was never served is
    compared as if it had been. `before` and `after` compare any two views, written
    `LINEAGE@VERSION#POSITION`, with every part optional: without `before` the whole log, without
    `after` the newest view. Tokens are estimates. `log` is the result of `read_fact_log`, to share
    it between comparisons. Raises NotFoundError, InvalidPositionError.
    """
    with translate_storage_errors(session.log.context.name):
        session.log.check_lineage(lineage)
        if before is None and after is None:
            numbers = list_boundaries(session, lineage) if boundary is None else [boundary]
            if not numbers:
                raise NotFoundError(
                    f"session {session.key!r} has no boundary on {lineage}: nothing was compacted"
                )
            number = numbers[-1]
            old, new = read_views_around(session, number, lineage)
            decisions = read_decisions(session, lineage)
            sizes = measure_compactions(session.log.events, decisions, [number])[number]
        elif boundary is not None:
            raise InvalidSettingError(
                "a boundary names both views: name it, or the views, not both"
            )
        else:
            newest = ViewReference(lineage)
            new = _read_view(session, newest if after is None else after, lineage)
            at = new.coordinate
            # Without a named view, compare with the whole log.
            whole = ViewReference(at.lineage, version=0, position=at.position)
            old = _read_view(session, whole if before is None else before, lineage)
            sizes = PromptSizeChange(
                session.log.measure_use(old), session.log.measure_use(new), SizeBasis.ESTIMATED
            )
        return compare_views(old, new, log or read_fact_log(session), sizes)


def read_views_around(
    session: StoredSession, number: int, lineage: str
) -> tuple[HistoryView, HistoryView]:
    """Return the views without a boundary and with it, at the position where it is first served."""
    events = read_decisions(session, lineage, without=[Summary])
    boundary = next((e for e in events if e.originator_version == number), None)
    if not isinstance(boundary, CompactBoundary):
        known = ", ".join(map(str, list_boundaries(session, lineage))) or "none"
        raise NotFoundError(f"lineage {lineage!r} has no boundary {number} (there is: {known})")
    for event in events:
        if isinstance(event, BoundaryActivated) and event.boundary == number:
            at, version = event.effective_from, event.originator_version
            return (
                session.view(lineage=lineage, at=at, lineage_version=version - 1),
                session.view(lineage=lineage, at=at, lineage_version=version),
            )
    before = session.view(lineage=lineage, at=boundary.after, lineage_version=number - 1)
    prepared = Coordinate(boundary.after, lineage, number)
    return before, session.log.reader(lineage).read_prepared(number, prepared)[1]


def number_compactions(session: StoredSession, lineage: str) -> dict[int, int]:
    """Return the number of each compaction, from 1 on, by the version of its boundary."""
    return {number: count for count, number in enumerate(list_boundaries(session, lineage), 1)}


def find_boundary(session: StoredSession, count: int, lineage: str) -> int:
    numbers = list_boundaries(session, lineage)
    if count > len(numbers):
        known = f"1 to {len(numbers)}" if len(numbers) > 1 else "1" if numbers else "none"
        raise NotFoundError(f"lineage {lineage!r} has no compaction {count} (there is: {known})")
    return numbers[count - 1]


def list_boundaries(session: StoredSession, lineage: str) -> list[int]:
    """Return the numbers of all boundaries of a lineage, including those that it inherits."""
    events = read_decisions(session, lineage, without=[Summary])
    return [event.originator_version for event in events if isinstance(event, CompactBoundary)]


def _read_view(session: StoredSession, named: str | ViewReference, lineage: str) -> HistoryView:
    at = read_view_reference(session, named, lineage) if isinstance(named, str) else named
    return session.view(lineage=at.lineage, at=at.position, lineage_version=at.version)

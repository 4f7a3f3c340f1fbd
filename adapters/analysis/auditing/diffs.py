"""Compares views of a stored session: around a boundary, or between any two coordinates."""

from collections.abc import Collection

from ....domain.compaction import MAIN
from ....domain.compaction_events import BoundaryActivated, CompactBoundary, Summary
from ....domain.counting.sizes import Basis, Sizes
from ....domain.errors import InvalidSettingError, NotFoundError
from ....projections.diffing.log_text import Log
from ....projections.diffing.view_diff import ViewDiff, view_diff
from ....projections.history_view import Coordinate, HistoryView
from ....projections.replay.neutral import rows_of
from ...runtime.sessions.stored_session import StoredSession
from ...storage.compaction_sizes import measure_compactions
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.view_reader import ViewReader
from ..replaying.recordings import decisions_of, recording_of
from .places import Place, place_of


def log_of(session: StoredSession) -> Log:
    """What the whole session said, to look facts up in."""
    return Log(rows_of(recording_of(session)))


def diff(
    session: StoredSession,
    boundary: int | None = None,
    *,
    lineage: str = MAIN,
    before: str | Place | None = None,
    after: str | Place | None = None,
) -> ViewDiff:
    """Return what left the view at a boundary, what replaced it, and which facts are gone.

    None is the newest boundary of `lineage`; one that was never served is compared as if it had
    been. `before` and `after` compare any two views, written `LINEAGE@VERSION#POSITION`, each part
    of which may be left out: without `before` the whole log, without `after` the newest view.
    Tokens are estimates. Raises NotFoundError, InvalidPositionError.
    """
    with speaking_plainly(session.log.context.name):
        return compare(session, boundary, lineage, before, after)


def compare(
    session: StoredSession,
    boundary: int | None = None,
    lineage: str = MAIN,
    before: str | Place | None = None,
    after: str | Place | None = None,
    *,
    log: Log | None = None,
) -> ViewDiff:
    """Compare the views around a boundary, or any two; see `diff`.

    `log` is what `log_of` gave, for whoever compares more than once.
    """
    session.log.check_lineage(lineage)
    if before is None and after is None:
        number = newest_boundary(session, lineage) if boundary is None else boundary
        old, new = views_around(session, number, lineage)
        sizes = compaction_sizes(session, lineage, only=[number])[number]
    elif boundary is not None:
        raise InvalidSettingError("a boundary names both views: name it, or the views, not both")
    else:
        new = _view(session, _place(session, after, lineage))
        at = new.coordinate.position
        # Compared with nothing that is named: with all that there was to be sent.
        whole = Place(new.coordinate.lineage, version=0, position=at)
        old = _view(session, whole if before is None else _place(session, before, lineage))
        sizes = Sizes(session.log.measure_use(old), session.log.measure_use(new), Basis.ESTIMATED)
    return view_diff(old, new, log or log_of(session), sizes)


def compaction_sizes(
    session: StoredSession, lineage: str = MAIN, *, only: Collection[int] | None = None
) -> dict[int, Sizes]:
    """Measure what prompts took before and after each boundary of a lineage, by its number.

    As the provider reported it of the calls before and after; else as it is estimated. `only`
    measures these alone.
    """
    with speaking_plainly(session.log.context.name):
        return measure_compactions(session.log.events, decisions_of(session, lineage), only)


def newest_boundary(session: StoredSession, lineage: str) -> int:
    """The number of the boundary that was drawn last."""
    numbers = boundaries_of(session, lineage)
    if not numbers:
        raise NotFoundError(
            f"session {session.key!r} has no boundary on {lineage}: nothing was compacted"
        )
    return numbers[-1]


def views_around(
    session: StoredSession, number: int, lineage: str
) -> tuple[HistoryView, HistoryView]:
    """What is sent without a boundary and with it, at the position where it is served first."""
    events = decisions_of(session, lineage, without=[Summary])
    activation = next(
        (e for e in events if isinstance(e, BoundaryActivated) and e.boundary == number), None
    )
    if activation is not None:
        at, version = activation.effective_from, activation.originator_version
        return (
            session.view(lineage=lineage, at=at, lineage_version=version - 1),
            session.view(lineage=lineage, at=at, lineage_version=version),
        )
    store = session.log.events
    reader = ViewReader(store, session.namespace, session.key, lineage)
    if number not in boundaries_of(session, lineage):
        known = ", ".join(map(str, boundaries_of(session, lineage))) or "none"
        raise NotFoundError(f"lineage {lineage!r} has no boundary {number} (there is: {known})")
    boundary = reader.boundary(number)[0]
    before = session.view(lineage=lineage, at=boundary.after, lineage_version=number - 1)
    coordinate = Coordinate(boundary.after, lineage, number)
    return before, reader.coming(number, coordinate)[1]


def count_of(session: StoredSession, boundary: int, lineage: str) -> int:
    """Which compaction of a lineage a boundary is: 1 for the first that was drawn."""
    return boundaries_of(session, lineage).index(boundary) + 1


def boundary_of(session: StoredSession, count: int, lineage: str) -> int:
    """The number of the boundary that is so many-th on a lineage, from 1 on."""
    numbers = boundaries_of(session, lineage)
    if count > len(numbers):
        known = f"1 to {len(numbers)}" if len(numbers) > 1 else "1" if numbers else "none"
        raise NotFoundError(f"lineage {lineage!r} has no compaction {count} (there is: {known})")
    return numbers[count - 1]


def boundaries_of(session: StoredSession, lineage: str) -> list[int]:
    """The numbers of all that were drawn on a lineage, those that it inherits included."""
    events = decisions_of(session, lineage, without=[Summary])
    return [event.originator_version for event in events if isinstance(event, CompactBoundary)]


def _place(session: StoredSession, named: str | Place | None, lineage: str) -> Place:
    if named is None:
        return Place(lineage)
    return place_of(session, named, lineage) if isinstance(named, str) else named


def _view(session: StoredSession, place: Place) -> HistoryView:
    return session.view(lineage=place.lineage, at=place.position, lineage_version=place.version)

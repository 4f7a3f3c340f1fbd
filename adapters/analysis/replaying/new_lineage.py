"""Stores what a replay decided as a lineage of its session: all of it, or nothing."""

from collections.abc import Sequence

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import MAIN, RECORDED, check_nameable, lineage_id
from ....domain.errors import ConflictError, InvalidSettingError
from ....domain.event import Event
from ...runtime.sessions.stored_session import StoredSession

SHADOW = "shadow:"
"""What the names of lineages begin with that other policies decide beside a live session."""
TAKEN = frozenset({MAIN, RECORDED})


def check_lineage_name(session: StoredSession, lineage: str) -> None:
    """Raises InvalidSettingError, or ConflictError where the session has that lineage already."""
    if lineage in TAKEN or lineage.startswith(SHADOW):
        raise InvalidSettingError(
            f"a replay is no lineage {lineage!r}: agents are served main, recorded is what took "
            f"place, and {SHADOW}... is decided beside live sessions; name another"
        )
    if lineage in session.log.lineages:
        raise _taken(session, lineage)
    check_nameable(lineage)


def store_lineage(session: StoredSession, lineage: str, decisions: Sequence[Event]) -> None:
    """Store a new lineage, in one transaction.

    Raises ConflictError where somebody else has begun one of that name meanwhile.
    """
    events = session.log.events
    with events.deciding_on(lineage_id(session.namespace, session.key, lineage)):
        try:
            events.save(*decisions)
        except IntegrityError:
            raise _taken(session, lineage) from None


def _taken(session: StoredSession, lineage: str) -> ConflictError:
    return ConflictError(f"session {session.key!r} has a lineage {lineage!r} already: name another")

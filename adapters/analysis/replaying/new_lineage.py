"""Stores the decisions of a replay as a lineage of its session: all of them, or none."""

from collections.abc import Sequence

from eventsourcing.persistence import IntegrityError

from ....domain.compaction import (
    MAIN_LINEAGE,
    RECORDED_LINEAGE,
    check_lineage_syntax,
    derive_lineage_id,
)
from ....domain.errors import ConflictError, InvalidSettingError
from ....domain.event import Event
from ...runtime.sessions.stored_session import StoredSession

SHADOW_PREFIX = "shadow:"
_RESERVED_LINEAGES = frozenset({MAIN_LINEAGE, RECORDED_LINEAGE})


def check_new_lineage(session: StoredSession, lineage: str) -> None:
    """Raise InvalidSettingError, or ConflictError if the session has that lineage already."""
    if lineage in _RESERVED_LINEAGES or lineage.startswith(SHADOW_PREFIX):
        raise InvalidSettingError(
            f"a replay is no lineage {lineage!r}: agents are served main, recorded is what took "
            f"place, and {SHADOW_PREFIX}... is for policies that decide next to live "
            "sessions; choose another name"
        )
    if lineage in session.log.lineages:
        raise _make_conflict(session, lineage)
    check_lineage_syntax(lineage)


def store_lineage(session: StoredSession, lineage: str, decisions: Sequence[Event]) -> None:
    """Store a new lineage, in one transaction.

    Raises ConflictError if another process has begun one of that name meanwhile.
    """
    events = session.log.events
    with events.lock_streams(derive_lineage_id(session.namespace, session.key, lineage)):
        try:
            events.save(*decisions)
        except IntegrityError:
            raise _make_conflict(session, lineage) from None


def _make_conflict(session: StoredSession, lineage: str) -> ConflictError:
    return ConflictError(f"session {session.key!r} has a lineage {lineage!r} already: name another")

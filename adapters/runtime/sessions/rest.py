"""Records that an agent comes to rest, and when it goes on by itself."""

from datetime import datetime

from ....domain.errors import InvalidSettingError
from .stored_session import StoredSession


def end_turn(session: StoredSession, outcome: str | None = None) -> None:
    """Record that the agent came to rest."""
    session.log.change(lambda aggregate: aggregate.end_turn(outcome))


def schedule_wake(session: StoredSession, at: datetime | None, reason: str | None = None) -> None:
    """Record that the agent goes on by itself at `at`; until then the session is not at rest.

    None takes back what was scheduled. Raises InvalidSettingError for a time without a time zone.
    """
    if at is not None and at.tzinfo is None:
        raise InvalidSettingError(
            f"the time {at.isoformat()} has no time zone; add one, e.g. +00:00"
        )
    session.log.change(lambda aggregate: aggregate.schedule_wake(at, reason))

"""Moments as the read models write them: in UTC, to the millisecond, so that text sorts as time."""

from datetime import UTC, datetime, timedelta

from ...domain.event import Event
from ...domain.session_events import BlockAppended, ToolCalled, ToolReturned


def moment(time: datetime) -> str:
    """`2026-01-01T09:30:00.250Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(written: str, seconds: float) -> str:
    """A written moment, and so many seconds after it."""
    return moment(datetime.fromisoformat(written) + timedelta(seconds=seconds))


def said_at(event: Event) -> datetime:
    """When it was said: of what was imported, by the source's own clock where that can be read."""
    match event:
        case BlockAppended(block=block) | ToolCalled(block=block) | ToolReturned(block=block) if (
            block.origin is not None and block.origin.time
        ):
            try:
                told = datetime.fromisoformat(block.origin.time)
            except ValueError:
                return event.timestamp  # a time in a notation of the source's own
            return told if told.tzinfo else told.replace(tzinfo=UTC)
        case _:
            return event.timestamp

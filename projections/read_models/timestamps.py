"""Moments as the read models write them: in UTC, to the millisecond, so that text sorts as time."""

from datetime import UTC, datetime, timedelta

from ...domain.blocks import AnyBlock
from ...domain.event import Event
from ...domain.session_events import BlockAppended, ToolCalled, ToolReturned
from ...domain.source_time import parse_source_time


def format_timestamp(time: datetime) -> str:
    """`2026-01-01T09:30:00.250Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_seconds(written: str, seconds: float) -> str:
    """A written moment, and so many seconds after it."""
    return format_timestamp(datetime.fromisoformat(written) + timedelta(seconds=seconds))


def find_event_time(event: Event) -> datetime:
    """When it was said: of what was imported, by the source's own clock where that can be read."""
    block = get_event_block(event)
    return (read_source_time(block) if block else None) or event.timestamp


_BLOCK_EVENTS = (BlockAppended, ToolCalled, ToolReturned)
"""Made once, for most that is done with events asks first what was said."""


def get_event_block(event: Event) -> AnyBlock | None:
    """What was said, where something was."""
    return event.block if isinstance(event, _BLOCK_EVENTS) else None


def read_source_time(block: AnyBlock) -> datetime | None:
    """When its source says that it was said; None where that is not told, or cannot be read."""
    if block.origin is None or not block.origin.time:
        return None
    return parse_source_time(block.origin.time)

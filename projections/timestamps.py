"""Formats times for the read models: in UTC, to the millisecond, so that text sorts as time."""

from datetime import UTC, datetime, timedelta

from ..domain.blocks import AnyBlock
from ..domain.event import Event, parse_source_time
from ..domain.session_events import BlockAppended, ToolCalled, ToolReturned


def format_timestamp(time: datetime) -> str:
    """Return a time such as `2026-01-01T09:30:00.250Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_seconds(written: str, seconds: float) -> str:
    return format_timestamp(datetime.fromisoformat(written) + timedelta(seconds=seconds))


def find_event_time(event: Event) -> datetime:
    """Return an event's time: for an import, the source's own if it can be read."""
    block = get_event_block(event)
    return (read_source_time(block) if block else None) or event.timestamp


BLOCK_EVENTS = (BlockAppended, ToolCalled, ToolReturned)
"""Built once, because almost every event is checked against it."""


def get_event_block(event: Event) -> AnyBlock | None:
    return event.block if isinstance(event, BLOCK_EVENTS) else None


def read_source_time(block: AnyBlock) -> datetime | None:
    """Return the time from a block's source; None if it is missing or cannot be read."""
    if block.origin is None or not block.origin.time:
        return None
    return parse_source_time(block.origin.time)

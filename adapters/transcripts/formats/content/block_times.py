"""When a block was said, as its source told it."""

from datetime import UTC, datetime

from .....domain.source_time import parse_source_time
from ..outgoing import OutgoingBlock


def get_block_time(said: OutgoingBlock) -> datetime:
    """When it was said; where the source tells no time, when it was recorded."""
    origin = said.block.origin
    return (parse_source_time(origin.time) if origin and origin.time else None) or said.time


def to_milliseconds(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


def to_iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

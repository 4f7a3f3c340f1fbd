"""Finds and formats the time of a block."""

from datetime import UTC, datetime

from .....domain.source_time import parse_source_time
from ..outgoing import OutgoingBlock


def get_block_time(said: OutgoingBlock) -> datetime:
    """Return the source's time, or else the time of recording."""
    origin = said.block.origin
    return (parse_source_time(origin.time) if origin and origin.time else None) or said.time


def to_milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def to_iso(moment: datetime) -> str:
    """Format as ISO 8601 with milliseconds, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

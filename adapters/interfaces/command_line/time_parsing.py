"""Parses times and durations as people write them."""

import re
from datetime import UTC, datetime, timedelta

from ....domain.errors import InvalidSettingError

_SPAN = re.compile(r"(\d{1,9}(?:\.\d+)?)\s*([smhdw]?)", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_moment(text: str, option: str) -> datetime:
    """Parse a time; without a zone it is local."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidSettingError(
            f"{option} takes a date and a time as 2026-01-31T09:00, not {text!r}"
        ) from None


def parse_span(text: str, option: str) -> timedelta:
    """Parse a duration; a number without a unit is seconds."""
    said = _SPAN.fullmatch(text.strip())
    if said is None:
        raise InvalidSettingError(f"{option} takes a span as 90s, 20m, 2h or 1d, not {text!r}")
    try:
        return timedelta(seconds=float(said[1]) * _SECONDS[said[2].lower()])
    except OverflowError:
        raise InvalidSettingError(f"{text} is further away than a calendar goes") from None


def parse_since(text: str) -> datetime:
    """Parse a date, a date and time, or a duration before now."""
    said = _SPAN.fullmatch(text.strip())
    try:
        if said and said[2]:
            return datetime.now(UTC) - parse_span(text, "--since")
        return datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidSettingError(
            f"--since takes a date as 2026-01-31, or a span as 7d, not {text!r}"
        ) from None

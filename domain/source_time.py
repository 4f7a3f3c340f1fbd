"""Parses times in the notations that sources use."""

from datetime import UTC, datetime

_MILLISECONDS_FROM = 100_000_000_000
"""Numbers below this are seconds, others milliseconds."""
_DATE_LENGTH = len("20260101")


def parse_source_time(time: str) -> datetime | None:
    """Return the time in UTC from ISO 8601 or a number since 1970; None for anything else."""
    whole, _, part = time.partition(".")
    try:
        # Some numbers also parse as a date and an hour, but in years before computers.
        if len(whole) <= _DATE_LENGTH or not (whole + part).isdecimal():
            moment = datetime.fromisoformat(time)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        pass  # perhaps it is a number all the same
    except OverflowError:
        return None  # near an end of the calendar, in another time zone
    try:
        number = float(time)
        seconds = number / 1000 if number >= _MILLISECONDS_FROM else number
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None

"""Moments as the read models write them: in UTC, to the millisecond, so that text sorts as time."""

from datetime import UTC, datetime, timedelta


def moment(time: datetime) -> str:
    """`2026-01-01T09:30:00.250Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(written: str, seconds: float) -> str:
    """A written moment, and so many seconds after it."""
    return moment(datetime.fromisoformat(written) + timedelta(seconds=seconds))

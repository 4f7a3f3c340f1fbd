"""A clock for tests, which is told the time."""

from datetime import UTC, datetime, timedelta


class Clock:
    def __init__(self) -> None:
        self.now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def advance(self, **duration: float) -> datetime:
        self.now += timedelta(**duration)
        return self.now


class StillClock(Clock):
    """A clock that moves only when a test moves it."""

    def __call__(self) -> datetime:
        return self.now

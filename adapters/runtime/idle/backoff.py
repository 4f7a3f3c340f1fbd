"""How long to leave alone what does not work just now: a database that is away, wrong settings."""

from datetime import datetime, timedelta

FIRST_PAUSE = timedelta(seconds=1)


class Backoff:
    """How long to leave alone what just failed: twice as long each time it fails again."""

    def __init__(self, longest: timedelta) -> None:
        self.longest = longest
        self._pause = timedelta()
        self._until: datetime | None = None

    @property
    def is_failing(self) -> bool:
        """Whether it failed the last time that it was tried."""
        return bool(self._pause)

    def note_failure(self, now: datetime) -> tuple[bool, datetime]:
        """Note a failure; whether it is the first, and until when to wait."""
        is_new = not self._pause
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), self.longest)
        self._until = now + self._pause
        return is_new, self._until

    def find_pause_end(self, now: datetime) -> datetime | None:
        """Until when to wait; None where it may be tried again."""
        # Further away than any pause is only what a clock that was put back makes of it.
        if self._until is None or not now < self._until <= now + self.longest:
            return None
        return self._until

    def note_success(self) -> bool:
        """Note a success; whether there was trouble before."""
        was, self._pause, self._until = bool(self._pause), timedelta(), None
        return was

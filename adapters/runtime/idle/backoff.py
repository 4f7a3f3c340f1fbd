"""Doubles the pause after each failure, e.g. of a database or of settings."""

from datetime import datetime, timedelta

FIRST_PAUSE = timedelta(seconds=1)


class Backoff:
    """The pause after repeated failures; it doubles with each."""

    def __init__(self, longest: timedelta) -> None:
        self.longest = longest
        self._pause = timedelta()
        self._until: datetime | None = None

    @property
    def is_failing(self) -> bool:
        return bool(self._pause)

    def note_failure(self, now: datetime) -> tuple[bool, datetime]:
        """Note a failure; return whether it is the first, and until when to wait."""
        is_new = not self._pause
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), self.longest)
        self._until = now + self._pause
        return is_new, self._until

    def find_pause_end(self, now: datetime) -> datetime | None:
        """Return until when to wait; None if it may be tried again."""
        # If the end is further away than any pause, the clock was set back.
        if self._until is None or not now < self._until <= now + self.longest:
            return None
        return self._until

    def note_success(self) -> bool:
        """Note a success; return whether there was a failure before."""
        was, self._pause, self._until = bool(self._pause), timedelta(), None
        return was

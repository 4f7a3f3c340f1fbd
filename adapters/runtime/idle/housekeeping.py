"""Has the storage's chores done in a worker's pool, while there is nothing better to do."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime

from .upkeep import Report, Upkeep


class Housekeeping:
    """The chores of one worker, one run at a time."""

    def __init__(self, upkeep: Upkeep, told: Callable[[Report], None]) -> None:
        """`told` hears of each chore that came to an end."""
        self.upkeep = upkeep
        self.told = told
        self.work: Future[None] | None = None
        self.has_to_wait = False
        """Whether there is something better to do: who is at a chore stops at its next step."""

    def begin(self, now: datetime, pool: Executor, doing: "Doing") -> datetime | None:
        """Begin what is due; returns when the next chore is, where none is begun.

        Raises StorageError where nobody can say what is due.
        """
        keep_at = self.upkeep.next_at()
        if keep_at is None or keep_at > now:
            return keep_at
        if self.work is None or self.work.done():
            self.work = pool.submit(self._keep, now, doing)
        return None

    def _keep(self, now: datetime, doing: "Doing") -> None:
        for report in doing(lambda: self.upkeep.run_due(now, lambda: not self.has_to_wait)):
            if not report.was_stopped:
                self.told(report)


Doing = Callable[[Callable[[], Sequence[Report]]], Sequence[Report]]
"""Does it, and sees to what goes wrong with the storage."""

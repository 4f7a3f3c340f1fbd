"""Has the storage's chores done in a worker's pool, while there is nothing better to do."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime

from .maintenance_runner import MaintenanceReport, MaintenanceRunner


class MaintenanceJob:
    """The chores of one worker, one run at a time."""

    def __init__(
        self, upkeep: MaintenanceRunner, told: Callable[[MaintenanceReport], None]
    ) -> None:
        """`told` hears of each chore that came to an end."""
        self.upkeep = upkeep
        self.told = told
        self.work: Future[None] | None = None
        self.has_to_wait = False
        """Whether there is something better to do: who is at a chore stops at its next step."""

    def begin(self, now: datetime, pool: Executor, doing: "RunWatched") -> datetime | None:
        """Begin what is due; returns when the next chore is, where none is begun.

        Raises StorageError where nobody can say what is due.
        """
        keep_at = self.upkeep.find_next_time()
        if keep_at is None or keep_at > now:
            return keep_at
        if self.work is None or self.work.done():
            self.work = pool.submit(self._run_due, now, doing)
        return None

    def _run_due(self, now: datetime, doing: "RunWatched") -> None:
        for report in doing(lambda: self.upkeep.run_due(now, lambda: not self.has_to_wait)):
            if not report.was_stopped:
                self.told(report)


RunWatched = Callable[[Callable[[], Sequence[MaintenanceReport]]], Sequence[MaintenanceReport]]
"""Does it, and sees to what goes wrong with the storage."""

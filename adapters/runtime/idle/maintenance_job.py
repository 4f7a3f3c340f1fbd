"""Runs the storage's maintenance in a worker's pool while nothing else is due."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime

from .maintenance_runner import MaintenanceReport, MaintenanceRunner


class MaintenanceJob:
    """The maintenance of one worker, one run at a time."""

    def __init__(
        self, upkeep: MaintenanceRunner, told: Callable[[MaintenanceReport], None]
    ) -> None:
        """`told` is called with each task that has ended."""
        self.upkeep = upkeep
        self.told = told
        self.work: Future[None] | None = None
        self.has_to_wait = False
        """Whether other work is due; a running task then stops at its next step."""

    def begin(self, now: datetime, pool: Executor, doing: "RunWatched") -> datetime | None:
        """Begin what is due; return when the next task is, if none is begun.

        Raises StorageError if the schedule cannot be read.
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
"""Runs the call, and handles storage errors."""

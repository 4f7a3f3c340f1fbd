"""What the log's own database wants done: a checkpoint, or statistics."""

from dataclasses import dataclass
from datetime import timedelta

from ...storage.event_log.storage import Storage
from .chore import GoOn, Work
from .chore_record import ChoreRecord


@dataclass
class DatabaseRoutine:
    """One step, which the database itself keeps whole."""

    place: Storage
    every: timedelta

    @property
    def name(self) -> str:
        return self.place.routine

    def run(self, record: ChoreRecord, go_on: GoOn) -> Work:
        del record, go_on  # it is short, and does not depend on the last one
        saved, note = self.place.run_routine()
        return Work(saved, note=note)

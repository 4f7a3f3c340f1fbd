"""Defines maintenance tasks, the stored record of each, and their reports."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

ShouldContinue = Callable[[], bool]
"""Called between two steps; returns False if the task should stop."""


class TaskOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    """Stopped for other work; the next run continues there."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TaskResult:
    saved: int = 0
    is_whole: bool = True
    """Whether nothing is left to do for now."""
    note: str | None = None
    position: int = 0


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The state of one task; empty if it never ran."""

    began_at: datetime | None = None
    """When the last run began, successful or not."""
    ended_at: datetime | None = None
    outcome: TaskOutcome | None = None
    reason: str | None = None
    """Why it failed or stopped, or the run's remark."""
    saved: int = 0
    """The bytes freed by the last run."""
    saved_in_all: int = 0
    failures: int = 0
    position: int = 0
    """The log notification up to which it is done, for a task that reads the log."""

    def to_json(self) -> str:
        known = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(known, default=datetime.isoformat)

    @classmethod
    def parse(cls, text: str | None) -> "TaskRecord":
        """Return the record; empty if it is unreadable, so that the task runs again."""
        try:
            return _RECORD.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def note_result(
        self, result: TaskResult, began_at: datetime, ended_at: datetime
    ) -> "TaskRecord":
        """Return the record after a run that did not fail."""
        stopped = "stopped for something better; it goes on later"
        return TaskRecord(
            began_at=began_at,
            ended_at=ended_at,
            outcome=TaskOutcome.DONE if result.is_whole else TaskOutcome.STOPPED,
            reason=result.note if result.is_whole else stopped,
            saved=result.saved,
            saved_in_all=self.saved_in_all + result.saved,
            position=result.position or self.position,
        )


_RECORD = TypeAdapter(TaskRecord)
"""Ignores the fields that a newer version may have written."""


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """A recurring task; each of its steps is atomic, even if the process is killed."""

    name: str
    interval: timedelta
    run: Callable[[TaskRecord, ShouldContinue], TaskResult]
    """Gets the newest record, and stops between two steps once it should not continue."""
    machine: str = ""
    """The machine that the task is for, if each one has its own."""

    @property
    def record_name(self) -> str:
        """The name of its record, which is stored in the log."""
        return f"{self.name} {self.machine}".rstrip()


@dataclass(frozen=True, slots=True)
class TaskReport:
    chore: str
    outcome: TaskOutcome
    began_at: datetime
    took_s: float
    next_at: datetime
    saved: int = 0
    """In bytes."""
    reason: str | None = None
    """One line: for a failure the thing, the fault and the remedy."""

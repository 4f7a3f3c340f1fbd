"""Defines maintenance tasks, the stored record of each, and their reports."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from ...storage.event_log.storage_tasks import Storage, TaskStore

ShouldContinue = Callable[[], bool]
"""Called between two steps; returns False if the task should stop."""


class TaskOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    """Stopped for other work; the next run continues there."""
    FAILED = "failed"


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
    """The number of failures in a row."""
    position: int = 0
    """The log notification up to which it is done, for a task that reads the log."""

    def to_json(self) -> str:
        known = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(known, default=datetime.isoformat)

    @classmethod
    def parse(cls, text: str | None) -> "TaskRecord":
        """Return the record; empty if it is unreadable, so that the task runs again."""
        try:
            known: dict[str, Any] = json.loads(text or "{}")
            for name in ("began_at", "ended_at"):
                if name in known:
                    known[name] = datetime.fromisoformat(known[name])
            if "outcome" in known:
                known["outcome"] = TaskOutcome(known["outcome"])
            # A newer version may have written more fields.
            return cls(**{name: known[name] for name in cls.__slots__ if name in known})
        except (ValueError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one run of a task did."""

    saved: int = 0
    """The bytes freed on disk."""
    is_whole: bool = True
    """Whether nothing is left to do for now."""
    note: str | None = None
    """A remark for the report."""
    position: int = 0


class MaintenanceTask(Protocol):
    """A recurring task; each of its steps is atomic, even if the process is killed."""

    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> timedelta: ...

    @property
    def task_store(self) -> TaskStore:
        """Where its record is stored, and where only one process at a time runs it."""
        ...

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        """Run while `go_on` returns True; `record` is the newest record."""
        ...


@dataclass
class DatabaseTask:
    """The log database's own task, a checkpoint or statistics, which it makes atomic itself."""

    task_store: Storage
    interval: timedelta

    @property
    def name(self) -> str:
        return self.task_store.task_name

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        del record, go_on  # it is short and independent of the last run
        saved, note = self.task_store.run_database_task()
        return TaskResult(saved, note=note)


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

    @property
    def has_failed(self) -> bool:
        return self.outcome is TaskOutcome.FAILED

    @property
    def was_stopped(self) -> bool:
        return self.outcome is TaskOutcome.STOPPED


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task as `idle --status` shows it."""

    chore: str
    last_run: datetime | None
    outcome: TaskOutcome | None
    reason: str | None
    saved: int
    saved_in_all: int
    failures: int
    next_at: datetime | None
    """None if it never ran and is due now."""

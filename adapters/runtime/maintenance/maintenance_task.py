"""Defines a maintenance task."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ...storage.event_log.storage_tasks import TaskStore
from .task_record import TaskRecord

ShouldContinue = Callable[[], bool]
"""Called between two steps; returns False if the task should stop."""


@dataclass(frozen=True, slots=True)
class TaskResult:
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

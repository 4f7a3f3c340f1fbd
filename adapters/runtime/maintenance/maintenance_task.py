"""What a chore is to whoever sees to it that it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ...storage.event_log.storage_tasks import TaskStore
from .task_record import TaskRecord

ShouldContinue = Callable[[], bool]
"""Is asked between two steps whether there is nothing better to do."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What came of a run."""

    saved: int = 0
    """Bytes that the disk has back."""
    is_whole: bool = True
    """Whether there is nothing left to do for now."""
    note: str | None = None
    """What is worth a word."""
    position: int = 0


class MaintenanceTask(Protocol):
    """One thing to do now and then; each step of it is whole, whoever is killed and whenever."""

    @property
    def name(self) -> str: ...

    @property
    def interval(self) -> timedelta: ...

    @property
    def task_store(self) -> TaskStore:
        """Where it is written down, and where only one does it at a time."""
        ...

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        """Do what is to be done, as long as `go_on` says so; `record` is the newest one."""
        ...

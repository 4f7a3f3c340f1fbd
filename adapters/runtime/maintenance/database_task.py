"""Runs the log database's own task: a checkpoint, or statistics."""

from dataclasses import dataclass
from datetime import timedelta

from ...storage.event_log.storage_tasks import Storage
from .maintenance_task import ShouldContinue, TaskResult
from .task_record import TaskRecord


@dataclass
class DatabaseTask:
    """A single step, which the database itself makes atomic."""

    task_store: Storage
    interval: timedelta

    @property
    def name(self) -> str:
        return self.task_store.task_name

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        del record, go_on  # it is short and independent of the last run
        saved, note = self.task_store.run_database_task()
        return TaskResult(saved, note=note)

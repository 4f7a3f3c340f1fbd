"""Runs due maintenance of the storage, one process at a time."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from ....domain.errors import CutbankError
from ...settings.settings import MaintenanceSettings
from ...storage.event_log.storage_errors import translate_storage_errors
from ..sessions.session_store import SessionStore
from .backups import rotate_backups
from .maintenance_task import ShouldContinue, TaskOutcome, TaskRecord, TaskStatus
from .recompression import TASK_NAME, Recompression

DUE_NOW = datetime.min.replace(tzinfo=UTC)
"""The due time of a task that never ran; it is always in the past."""
BUSY_PAUSE_TIME = timedelta(minutes=1)
"""When to try again after another process had the task, or it was stopped."""
FIRST_BACKOFF = timedelta(minutes=15)
MAX_BACKOFF = timedelta(hours=6)


class MaintenanceTask(NamedTuple):
    """A recurring task; each of its steps is atomic, even if the process is killed."""

    name: str
    interval: timedelta
    run: Callable[[TaskRecord, ShouldContinue], TaskRecord]
    """Gets the newest record, and stops between two steps once it should not continue."""


class Maintenance:
    """The maintenance of one store, for any number of processes.

    Its records are stored in the log, where all of them can read them. If records are lost, tasks
    run again, which is harmless.
    """

    def __init__(self, store: SessionStore, settings: MaintenanceSettings | None = None) -> None:
        """Without `settings`, those of the store hold."""
        self.store = store
        self.settings = settings or store.settings.maintenance
        self._recorder = store.events.recorder
        self._not_before: dict[str, datetime] = {}
        """Tasks that this process put off; others decide for themselves."""

    def find_next_time(self) -> datetime | None:
        """Return when the earliest task is due, possibly in the past; None if there are none.

        Raises StorageError if the database cannot be read.
        """
        now = self.store.events.clock()
        return min(
            (self._find_time(task, self._read_record(task), now) for task in self._list_tasks()),
            default=None,
        )

    def run_due(self, now: datetime, go_on: ShouldContinue = lambda: True) -> list[TaskStatus]:
        """Run what is due; failures are reported, and tried again later.

        `go_on` is called between steps and returns False to stop. Tasks that another process runs
        or has done are not reported. Raises StorageError if the records cannot be read.
        """
        reports = []
        for task in self._list_tasks():
            if not go_on():
                break
            due_at = self._find_time(task, self._read_record(task), now)
            if due_at <= now and (done := self._run(task, now, go_on)):
                reports.append(self._describe(task, done, now))
        return reports

    def read_status(self) -> list[TaskStatus]:
        now = self.store.events.clock()
        return [self._describe(task, self._read_record(task), now) for task in self._list_tasks()]

    def _list_tasks(self) -> list[MaintenanceTask]:
        """Return the tasks in their order; none if they are turned off or the log is in memory."""
        settings, tasks = self.settings, list[MaintenanceTask]()
        if not settings.enabled or self._recorder.is_in_memory:
            return tasks
        if settings.cold_after is not None:
            every = timedelta(hours=settings.every)
            tasks.append(MaintenanceTask(TASK_NAME, every, self._recompress))
        if settings.backup_folder is not None:
            every = timedelta(hours=settings.backup_every)
            tasks.append(MaintenanceTask("backup", every, self._back_up))
        return tasks

    def _recompress(self, record: TaskRecord, go_on: ShouldContinue) -> TaskRecord:
        cold_after = timedelta(days=self.settings.cold_after or 0)
        return Recompression(self.store.events, cold_after).run(record, go_on)

    def _back_up(self, _record: TaskRecord, _go_on: ShouldContinue) -> TaskRecord:
        # A backup is a single read of the log that cannot stop halfway.
        folder = Path(self.settings.backup_folder or "").expanduser()
        remark = rotate_backups(self.store, folder, self.settings.backup_keep)
        return TaskRecord(outcome=TaskOutcome.DONE, reason=remark)

    def _read_record(self, task: MaintenanceTask) -> TaskRecord:
        with translate_storage_errors(self.store.name):
            return TaskRecord.parse(self._recorder.read_records().get(task.name))

    def _save_record(self, task: MaintenanceTask, record: TaskRecord) -> None:
        with translate_storage_errors(self.store.name):
            self._recorder.save_record(task.name, record.to_json())

    def _find_time(self, task: MaintenanceTask, record: TaskRecord, now: datetime) -> datetime:
        """Return when a task is due for this process."""
        due = find_due_time(task, record, now)
        return max(due, self._not_before.get(task.name, due))

    def _describe(self, task: MaintenanceTask, record: TaskRecord, now: datetime) -> TaskStatus:
        due = self._find_time(task, record, now)
        return TaskStatus(
            chore=task.name,
            last_run=record.began_at,
            took_s=record.took_s,
            outcome=record.outcome,
            reason=record.reason,
            saved=record.saved,
            saved_in_all=record.saved_in_all,
            failures=record.failures,
            next_at=None if due == DUE_NOW else due,
        )

    def _run(
        self, task: MaintenanceTask, now: datetime, go_on: ShouldContinue
    ) -> TaskRecord | None:
        """Run a task and return its record; None if another process has it or has done it."""
        clock = self.store.events.clock
        try:
            with translate_storage_errors(self.store.name), self._recorder.try_lock() as is_alone:
                record = self._read_record(task)  # another process may have done it just now
                if not is_alone or find_due_time(task, record, now) > now:
                    self._not_before[task.name] = now + BUSY_PAUSE_TIME
                    return None
                done = replace(task.run(record, go_on), began_at=now, ended_at=clock())
                self._save_record(task, done)
        except Exception as error:  # noqa: BLE001 - the other tasks must run, whatever the error
            done = self._record_failure(task, error, now)
            # The record may not have been stored.
            self._not_before[task.name] = find_due_time(task, done, now)
        else:
            self._not_before.pop(task.name, None)
        return done

    def _record_failure(self, task: MaintenanceTask, error: Exception, now: datetime) -> TaskRecord:
        reason = str(error) if isinstance(error, CutbankError) else repr(error)
        known = TaskRecord()
        # If the database itself fails, only this process remembers the failure.
        with suppress(CutbankError):
            known = self._read_record(task)
        failed = replace(
            known,
            began_at=now,
            ended_at=self.store.events.clock(),
            outcome=TaskOutcome.FAILED,
            reason=" ".join(reason.split()),
            saved=0,
            failures=known.failures + 1,
        )
        with suppress(CutbankError):
            self._save_record(task, failed)
        return failed


def find_due_time(task: MaintenanceTask, record: TaskRecord, now: datetime) -> datetime:
    """Return when a task is due by its record alone."""
    if record.began_at is None or record.ended_at is None:
        return DUE_NOW
    match record.outcome:
        case TaskOutcome.FAILED:
            wait = min(FIRST_BACKOFF * 2 ** min(record.failures - 1, 10), MAX_BACKOFF)
            due = record.ended_at + min(wait, task.interval)
        case TaskOutcome.STOPPED:
            due = record.ended_at + BUSY_PAUSE_TIME
        case _:
            due = record.began_at + task.interval
    # A machine's clock may be ahead of others, but a time further ahead than this was wrong.
    return due if due <= now + 2 * task.interval else DUE_NOW


def run_maintenance(store: SessionStore) -> list[TaskStatus]:
    """Run the maintenance tasks that are due, and return the status of each.

    The settings, section `maintenance`, say which tasks there are and how often each is due.
    """
    return Maintenance(store).run_due(store.events.clock())

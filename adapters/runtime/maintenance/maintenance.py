"""Runs due maintenance of the storage while no process writes, one process at a time."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from platform import node
from time import monotonic
from typing import Any

from ....domain.errors import CutbankError
from ...settings.settings import MaintenanceSettings
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.event_mapper import load_json
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.read_models.read_model_file import find_read_models
from ..sessions.session_store import SessionStore
from .backups import rotate_backups
from .maintenance_task import (
    MaintenanceTask,
    ShouldContinue,
    TaskOutcome,
    TaskRecord,
    TaskReport,
    TaskResult,
)
from .read_model_maintenance import ReadModelFile
from .recompression import TASK_NAME, Recompression

DUE_NOW = datetime.min.replace(tzinfo=UTC)
"""The due time of a task that never ran; it is always in the past."""
BUSY_PAUSE_TIME = timedelta(minutes=1)
"""When to try again after another process had the task, or it was stopped."""
FIRST_BACKOFF = timedelta(minutes=15)
MAX_BACKOFF = timedelta(hours=6)


class Maintenance:
    """The maintenance of one store, for any number of processes.

    Its records are stored where all of them can read them. If records are lost, tasks run again,
    which is harmless.
    """

    def __init__(self, store: SessionStore, settings: MaintenanceSettings | None = None) -> None:
        """Without `settings`, those of the store hold."""
        self.store = store
        self.settings = settings or store.settings.maintenance
        self._recorder = store.events.recorder
        self._began = store.events.clock()
        self._not_before: dict[str, datetime] = {}
        """Tasks that this process put off; others decide for themselves."""

    def find_next_time(self) -> datetime | None:
        """Return when the earliest task is due, possibly in the past; None if there are none.

        Raises StorageError if the database cannot be read.
        """
        now = self.store.events.clock()
        tasks = self._list_tasks()
        return min(
            (self._find_time(one, self._read_record(one), now) for one in tasks), default=None
        )

    def run_due(self, now: datetime, go_on: ShouldContinue = lambda: True) -> list[TaskReport]:
        """Run what is due; failures are reported, and tried again later.

        `go_on` is called between steps and returns False to stop. Tasks that another process runs
        or has done are not reported. Raises StorageError if the records cannot be read.
        """
        reports = []
        for task in self._list_tasks():
            if not go_on():
                break
            record = self._read_record(task)
            if self._find_time(task, record, now) > now:
                continue
            due_at = find_due_time(task, record, now)
            if report := self._run(task, due_at, now, go_on):
                reports.append(report)
        return reports

    def read_status(self) -> list[dict[str, Any]]:
        """Return what `idle --status` says of each task; one that never ran has no `next_at`."""
        now = self.store.events.clock()
        found = []
        for task in self._list_tasks():
            record = self._read_record(task)
            due = self._find_time(task, record, now)
            status = {
                "chore": task.name,
                "last_run": record.began_at,
                "outcome": record.outcome,
                "reason": record.reason,
                "saved": record.saved,
                "saved_in_all": record.saved_in_all,
                "failures": record.failures,
                "next_at": None if due == DUE_NOW else due,
            }
            found.append(status)
        return found

    def _list_tasks(self) -> list[MaintenanceTask]:
        """Return the tasks in their order; none if they are turned off or the log is in memory.

        Read models get their task only once they exist.
        """
        store, settings = self.store, self.settings
        with translate_storage_errors(store.name):
            database_task = self._recorder.database_task
            if database_task is None or not settings.enabled:
                return []
            every = timedelta(hours=settings.every)
            tasks = []
            if settings.cold_after is not None:
                tasks.append(MaintenanceTask(TASK_NAME, every, self._recompress))
            file = ReadModelFile(Path(find_read_models(store.name)))
            if file.is_there():
                machine = node() if is_postgres(store.name) else ""
                tasks.append(MaintenanceTask("read-models", every, file.maintain, machine))
            if settings.backup_folder is not None:
                often = timedelta(hours=settings.backup_every)
                tasks.append(MaintenanceTask("backup", often, self._back_up))
            # The checkpoint comes last, since the tasks before it fill the write-ahead log.
            is_checkpoint = database_task == "checkpoint"
            often = timedelta(hours=settings.checkpoint_every) if is_checkpoint else every
            tasks.append(MaintenanceTask(database_task, often, self._tend_database))
            return tasks

    def _recompress(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        cold_after = timedelta(days=self.settings.cold_after or 0)
        return Recompression(self.store.events, cold_after).run(record, go_on)

    def _back_up(self, _record: TaskRecord, _go_on: ShouldContinue) -> TaskResult:
        # A backup is a single read of the log that cannot stop halfway.
        folder = Path(self.settings.backup_folder or "").expanduser()
        return rotate_backups(self.store, folder, self.settings.backup_keep)

    def _tend_database(self, _record: TaskRecord, _go_on: ShouldContinue) -> TaskResult:
        saved, note = self._recorder.run_database_task()
        return TaskResult(saved, note=note)

    def _read_record(self, task: MaintenanceTask) -> TaskRecord:
        with translate_storage_errors(self.store.name):
            return TaskRecord.parse(self._recorder.read_records().get(task.record_name))

    def _find_time(self, task: MaintenanceTask, record: TaskRecord, now: datetime) -> datetime:
        """Return when a task is due for this process."""
        due = find_due_time(task, record, now)
        return max(due, self._not_before.get(task.name, due))

    def _run(
        self, task: MaintenanceTask, due_at: datetime, now: datetime, go_on: ShouldContinue
    ) -> TaskReport | None:
        """Run a task; return None if it is put off or another process has it."""
        # Writers come first, but not for longer than the task's interval.
        if now < max(due_at, self._began) + task.interval:
            rest = timedelta(seconds=self.settings.rest)
            if (rested := _find_quiet_time(self.store.events, rest, now)) > now:
                self._not_before[task.name] = rested
                return None
            go_on = self._stop_at_writes(go_on)
        began = monotonic()
        try:
            with translate_storage_errors(self.store.name), self._recorder.try_lock() as is_alone:
                record = self._read_record(task)  # another process may have done it just now
                if not is_alone or find_due_time(task, record, now) > now:
                    self._not_before[task.name] = now + BUSY_PAUSE_TIME
                    return None
                result = task.run(record, go_on)
                done = record.note_result(result, now, self.store.events.clock())
                self._recorder.save_record(task.record_name, done.to_json())
        except Exception as error:  # noqa: BLE001 - the other tasks must run, whatever the error
            done = self._record_failure(task, error, now)
        self._not_before.pop(task.name, None)
        if done.outcome is TaskOutcome.STOPPED:
            self._not_before[task.name] = now + BUSY_PAUSE_TIME
        elif done.outcome is TaskOutcome.FAILED:
            # The record may not have been stored.
            self._not_before[task.name] = find_due_time(task, done, now)
        return TaskReport(
            chore=task.name,
            outcome=done.outcome or TaskOutcome.DONE,
            began_at=now,
            took_s=monotonic() - began,
            saved=done.saved,
            reason=done.reason,
            next_at=self._find_time(task, done, now),
        )

    def _stop_at_writes(self, go_on: ShouldContinue) -> ShouldContinue:
        recorder = self._recorder
        newest = recorder.max_notification_id()
        return lambda: go_on() and recorder.max_notification_id() == newest

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
        with suppress(CutbankError), translate_storage_errors(self.store.name):
            self._recorder.save_record(task.record_name, failed.to_json())
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
            due = record.ended_at
        case _:
            due = record.began_at + task.interval
    # A machine's clock may be ahead of others, but a time further ahead than this was wrong.
    return due if due <= now + 2 * task.interval else DUE_NOW


def _find_quiet_time(events: EventStore, rest: timedelta, now: datetime) -> datetime:
    """Return when the log will have been quiet for so long; in the past if it is now.

    The log itself is read, so that writers in all processes and machines count. The time of an
    event from the future is ignored.
    """
    newest = events.recorder.max_notification_id()
    for event in events.recorder.select_notifications(newest, 1) if newest else ():
        try:
            state = load_json(events.mapper.read_plaintext(event))
            at = datetime.fromisoformat(state["timestamp"])
        except Exception:  # noqa: BLE001 - encrypted or damaged, which `verify` reports
            return now
        return at + rest if at <= now else now
    return now


def run_maintenance(store: SessionStore) -> list[TaskReport]:
    """Run the maintenance tasks that are due, and return a report for each.

    The settings, section `maintenance`, say which tasks there are and how often each is due.
    """
    return Maintenance(store).run_due(store.events.clock())

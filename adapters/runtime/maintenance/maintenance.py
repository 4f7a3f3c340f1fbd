"""Runs due maintenance of the storage while no process writes, one process at a time."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic

from ....domain.errors import CutbankError
from ...settings.maintenance_settings import MaintenanceSettings
from ...storage.event_log.storage_errors import translate_storage_errors
from ..sessions.session_store import SessionStore
from .log_activity import LogActivity
from .maintenance_task import MaintenanceTask, ShouldContinue, TaskResult
from .task_catalog import make_tasks
from .task_record import TaskOutcome, TaskRecord, TaskReport, TaskStatus

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

    def __init__(
        self, store: SessionStore, settings: MaintenanceSettings, clock: Callable[[], datetime]
    ) -> None:
        self.store = store
        self.clock = clock
        self.apply_settings(settings)
        self._not_before: dict[str, datetime] = {}
        """Tasks that this process put off; others decide for themselves."""
        self._waiting_since: dict[str, datetime] = {}

    def apply_settings(self, settings: MaintenanceSettings) -> None:
        self.settings = settings
        self._writers = LogActivity(self.store.events, timedelta(seconds=settings.rest))
        self._patience = timedelta(hours=settings.patience)

    def find_next_time(self) -> datetime | None:
        """Return when the earliest task is due, possibly in the past; None if there are none.

        Raises StorageError if the database cannot be read.
        """
        now = self.clock()
        due = (
            self._find_due_time(chore, self._read_record(chore), now)
            for chore in self._make_tasks()
        )
        return min(due, default=None)

    def run_due(self, now: datetime, go_on: ShouldContinue = lambda: True) -> list[TaskReport]:
        """Run what is due; failures are reported, and tried again later.

        `go_on` is called between steps and returns False to stop. Tasks that another process runs
        or has done are not reported. Raises StorageError if the records cannot be read.
        """
        reports = []
        for chore in self._make_tasks():
            if not go_on():
                break
            record = self._read_record(chore)
            if self._find_usual_time(chore, record, now) > now:
                self._waiting_since.pop(chore.name, None)  # another process has done it
            elif self._find_due_time(chore, record, now) > now:
                pass  # it was put off
            elif report := self._run(chore, now, go_on):
                reports.append(report)
        return reports

    def read_status(self) -> list[TaskStatus]:
        now = self.clock()
        return [
            self._make_status(chore, self._read_record(chore), now) for chore in self._make_tasks()
        ]

    def _make_status(self, chore: MaintenanceTask, record: TaskRecord, now: datetime) -> TaskStatus:
        due = self._find_due_time(chore, record, now)
        return TaskStatus(
            chore=chore.name,
            last_run=record.began_at,
            outcome=record.outcome,
            reason=record.reason,
            saved=record.saved,
            saved_in_all=record.saved_in_all,
            failures=record.failures,
            next_at=None if due == DUE_NOW else due,
        )

    def _make_tasks(self) -> list[MaintenanceTask]:
        with translate_storage_errors(self.store.name):
            return make_tasks(self.store, self.settings)

    def _read_record(self, chore: MaintenanceTask) -> TaskRecord:
        with translate_storage_errors(self.store.name):
            return TaskRecord.parse(chore.task_store.read_records().get(chore.name))

    def _find_due_time(self, chore: MaintenanceTask, record: TaskRecord, now: datetime) -> datetime:
        due = self._find_usual_time(chore, record, now)
        return max(due, self._not_before.get(chore.name, due))

    def _find_usual_time(
        self, chore: MaintenanceTask, record: TaskRecord, now: datetime
    ) -> datetime:
        if record.began_at is None or record.ended_at is None:
            return DUE_NOW
        match record.outcome:
            case TaskOutcome.FAILED:
                wait = min(FIRST_BACKOFF * 2 ** min(record.failures - 1, 10), MAX_BACKOFF)
                due = record.ended_at + min(wait, chore.interval)
            case TaskOutcome.STOPPED:
                due = record.ended_at
            case _:
                due = record.began_at + chore.interval
        # A machine's clock may be ahead of others, but a time further ahead than this was wrong.
        return due if due <= now + 2 * chore.interval else DUE_NOW

    def _run(
        self, chore: MaintenanceTask, now: datetime, go_on: ShouldContinue
    ) -> TaskReport | None:
        """Run a task; return None if it is put off or another process has it."""
        since = self._waiting_since.setdefault(chore.name, now)
        waits = now - since < self._patience
        if waits and (rested := self._writers.find_quiet_time(now)) > now:
            self._not_before[chore.name] = rested
            return None
        began = monotonic()
        try:
            with translate_storage_errors(self.store.name), chore.task_store.try_lock() as is_alone:
                record = self._read_record(chore)  # another process may have done it just now
                if not is_alone or self._find_usual_time(chore, record, now) > now:
                    self._not_before[chore.name] = now + BUSY_PAUSE_TIME
                    return None
                work = chore.run(record, self._stop_at_writes(go_on) if waits else go_on)
                done = self._make_record(record, work, now)
                chore.task_store.save_record(chore.name, done.to_json())
        except Exception as error:  # noqa: BLE001 - the other tasks must run, whatever the error
            done = self._record_failure(chore, error, now)
        self._not_before.pop(chore.name, None)
        if done.outcome is not TaskOutcome.STOPPED:
            self._waiting_since.pop(chore.name)
        match done.outcome:
            case TaskOutcome.STOPPED:
                self._not_before[chore.name] = now + BUSY_PAUSE_TIME
            case TaskOutcome.FAILED:
                # The record may not have been stored.
                self._not_before[chore.name] = self._find_usual_time(chore, done, now)
        return TaskReport(
            chore=chore.name,
            outcome=done.outcome or TaskOutcome.DONE,
            began_at=now,
            took_s=monotonic() - began,
            saved=done.saved,
            reason=done.reason,
            next_at=self._find_due_time(chore, done, now),
        )

    def _stop_at_writes(self, go_on: ShouldContinue) -> ShouldContinue:
        newest = self._writers.read_newest()
        return lambda: go_on() and self._writers.read_newest() == newest

    def _make_record(self, record: TaskRecord, work: TaskResult, now: datetime) -> TaskRecord:
        return TaskRecord(
            began_at=now,
            ended_at=self.clock(),
            outcome=TaskOutcome.DONE if work.is_whole else TaskOutcome.STOPPED,
            reason=work.note if work.is_whole else "stopped for something better; it goes on later",
            saved=work.saved,
            saved_in_all=record.saved_in_all + work.saved,
            position=work.position or record.position,
        )

    def _record_failure(
        self, chore: MaintenanceTask, error: Exception, now: datetime
    ) -> TaskRecord:
        reason = str(error) if isinstance(error, CutbankError) else repr(error)
        failed = TaskRecord(began_at=now, ended_at=self.clock(), failures=1)
        # If the database itself fails, only this process remembers the failure.
        with suppress(CutbankError):
            known = self._read_record(chore)
            failed = replace(known, began_at=now, ended_at=self.clock())
            failed = replace(failed, failures=known.failures + 1)
        failed = replace(
            failed, outcome=TaskOutcome.FAILED, reason=" ".join(reason.split()), saved=0
        )
        with suppress(CutbankError), translate_storage_errors(self.store.name):
            chore.task_store.save_record(chore.name, failed.to_json())
        return failed


def run_maintenance(store: SessionStore) -> list[TaskReport]:
    """Run the maintenance tasks that are due, and return a report for each.

    The settings, section `maintenance`, say which tasks there are and how often each is due.
    """
    clock = store.events.clock
    return Maintenance(store, store.settings.maintenance, clock).run_due(clock())

"""Makes backups at intervals, checks each one, and only then removes the oldest."""

import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from ....domain.errors import StorageError
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.event_log.storage_tasks import Storage
from ...storage.sqlite import sqlite_schema
from ...storage.sqlite.database_file import find_database_path
from ..sessions.session_store import SessionStore
from .backup_names import UNFINISHED, BackupNames
from .maintenance_task import ShouldContinue, TaskResult
from .task_record import TaskRecord

_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass
class BackupRotation:
    """Makes and rotates backups; the next run removes what a killed process left unfinished."""

    store: SessionStore
    task_store: Storage
    interval: timedelta
    folder: Path
    kept_backups: int
    name: str = "backup"

    def run(self, record: TaskRecord, go_on: ShouldContinue) -> TaskResult:
        del record, go_on  # a backup is a single read of the log that cannot stop halfway
        newest = self.store.events.recorder.max_notification_id()
        if not newest:
            return TaskResult(note="the log is empty")
        try:
            names = self._make_names()
            self._sweep(names)
            made = self._make_backup(names, newest)
            self._rotate(names, made)
            size = made.stat().st_size
        except OSError as error:
            raise StorageError(
                f"no backup can be kept in {self.folder}: {error.strerror or error}; "
                "check the folder, or set maintenance.backup_folder"
            ) from error
        return TaskResult(note=f"{made.name}, {size:,} bytes")

    def _make_backup(self, names: BackupNames, newest: int) -> Path:
        target = self._find_free_path(names, self.store.events.clock())
        unfinished = Path(f"{target}{UNFINISHED}")
        try:
            self.store.backup(unfinished)
            _check_backup(unfinished, newest)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        unfinished.rename(target)
        _sync_folder(self.folder)
        return target

    def _rotate(self, names: BackupNames, made: Path) -> None:
        there = [found.name for found in self.folder.iterdir() if _is_file(found)]
        for name in names.list_superfluous(there, made.name, self.kept_backups):
            (self.folder / name).unlink(missing_ok=True)

    def _sweep(self, names: BackupNames) -> None:
        """Remove unfinished backups: only this process makes any now."""
        for found in list(self.folder.iterdir()):
            if names.is_unfinished(found.name) and _is_file(found):
                found.unlink(missing_ok=True)

    def _find_free_path(self, names: BackupNames, moment: datetime) -> Path:
        while (path := self.folder / names.make_name(moment)).exists():
            moment += timedelta(seconds=1)
        return path

    def _make_names(self) -> BackupNames:
        """Return names made from the log's place and first event, so that copies have their own."""
        address = self.store.name
        path = None if is_postgres(address) else find_database_path(address)
        (first,) = self.store.events.recorder.select_notifications(1, 1)
        mark = blake2b(f"{path or address}\n".encode(), digest_size=4)
        mark.update(f"{first.originator_id}\n".encode() + first.state)
        called = path.stem if path else address.partition("?")[0].rpartition("/")[2]
        return BackupNames(_NOT_FOR_NAMES.sub("_", called)[:80] or "log", mark.hexdigest())


def _check_backup(backup: Path, newest: int) -> None:
    """Raise StorageError if the backup does not open, is damaged, or lacks events."""
    with (
        translate_storage_errors(str(backup)),
        closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro", uri=True)) as found,
    ):
        is_current = sqlite_schema.is_current_schema(found, str(backup))
        (held,) = found.execute(
            "SELECT coalesce(max(notification_id), 0) FROM stored_events"
        ).fetchone()
        wrong = [line for (line,) in found.execute("PRAGMA quick_check(1)") if line != "ok"]
    if wrong or not is_current or held < newest:
        why = " ".join((wrong or [f"it ends at {held} of {newest}"])[0].split())
        raise StorageError(f"{backup} is not whole ({why}): check the disk that it is on")


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name is on disk before an old one goes."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

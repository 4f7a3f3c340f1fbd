"""Makes backups at intervals, checks each one, and only then removes the oldest."""

import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path

from ....domain.errors import StorageError
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.sqlite import sqlite_schema
from ...storage.sqlite.database_file import find_database_path
from ..sessions.session_store import SessionStore
from .maintenance_task import ShouldContinue, TaskRecord, TaskResult

UNFINISHED = ".unfinished"
_FILE_SUFFIXES = ("", "-journal", "-wal", "-shm")
"""The endings of the files that SQLite writes next to a database."""
_MOMENT = "%Y%m%dT%H%M%SZ"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class BackupNames:
    """The names of one log's backups, such as `sessions-1f2e3d4c-20260101T000000Z.db`.

    The letters in the middle identify the log, so that logs may share a folder.
    """

    log: str
    mark: str

    def make_name(self, moment: datetime) -> str:
        return f"{self.log}-{self.mark}-{moment.astimezone(UTC).strftime(_MOMENT)}.db"

    def parse_moment(self, name: str) -> datetime | None:
        moment = name.removeprefix(f"{self.log}-{self.mark}-").removesuffix(".db")
        try:
            parsed = datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)
        except ValueError:
            return None
        # Other names, and other spellings of the moment, can be parsed too.
        return parsed if self.make_name(parsed) == name else None

    def is_unfinished(self, name: str) -> bool:
        made, unfinished, ending = name.partition(UNFINISHED)
        return bool(unfinished and ending in _FILE_SUFFIXES and self.parse_moment(made))

    def list_superfluous(self, names: Iterable[str], newest: str, keep: int) -> list[str]:
        """Return the oldest backups beyond `keep`; never `newest`, nor files with other names.

        `newest` was just made, even if a clock that was set back says otherwise.
        """
        found = {name: moment for name in names if (moment := self.parse_moment(name))}
        found.pop(newest, None)
        by_age = sorted(found, key=lambda name: found[name], reverse=True)
        return by_age[max(0, keep - 1) :]


@dataclass
class BackupRotation:
    """Makes and rotates backups; the next run removes what a killed process left unfinished."""

    store: SessionStore
    folder: Path
    kept_backups: int

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

"""Runs the chores of a worker: makes backups at intervals, and erases sessions that are too old.

Each backup is checked, and only then is the oldest removed.
"""

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from ...domain.errors import CutbankError, NotFoundError, StorageError
from ..settings.settings import MaintenanceSettings
from ..storage.databases import sqlite_schema
from ..storage.databases.database_file import find_database_path
from ..storage.event_log.addresses import is_postgres
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.private_files import make_file
from .erasing import apply_retention
from .sessions.session_store import SessionStore

UNFINISHED = ".unfinished"
DUE_NOW = datetime.min.replace(tzinfo=UTC)
"""The due time if there is no backup yet; it is always in the past."""
_BUSY_PAUSE = timedelta(minutes=1)
"""When to look again after another process made the backup."""
FIRST_BACKOFF = timedelta(minutes=15)
MAX_BACKOFF = timedelta(hours=6)
CHECK_INTERVAL = timedelta(hours=6)
"""How often a worker looks for what has become too old."""
_MOMENT = "%Y%m%dT%H%M%SZ"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class ChoreStatus:
    """The newest run of a chore; `idle --status` says it of the backups."""

    last_run: datetime | None
    """When the newest backup was made, or tried just now."""
    took_s: float | None
    outcome: Literal["done", "failed"] | None
    reason: str | None
    """One line: the new backup, or for a failure the thing, the fault and the remedy."""
    failures: int
    """How many attempts in a row have failed in this process."""
    next_at: datetime | None
    """None if there is no backup, and one is due now."""
    chore: str = "backup"


class Backups:
    """The backups of one store, made by any number of processes.

    The folder itself says when the newest one was made. A lock on a file in it, which ends with its
    process, keeps two processes from making the same one.
    """

    name = "backup"

    def __init__(self, store: SessionStore, settings: MaintenanceSettings | None = None) -> None:
        """Without `settings`, those of the store hold."""
        self.store = store
        settings = settings or store.settings.maintenance
        is_kept = settings.backup_folder and not store.events.recorder.is_in_memory
        self.folder = Path(settings.backup_folder or "").expanduser() if is_kept else None
        self._interval = timedelta(hours=settings.backup_every)
        self._keep = settings.backup_keep
        self.failures = 0
        self._not_before = DUE_NOW
        """Until when this process leaves it to others, or waits after a failure."""

    def find_next_time(self) -> datetime | None:
        """Return when a backup is due, possibly in the past; None if there will be none.

        Raises StorageError if the database cannot be read.
        """
        if self.folder is None or (prefix := self._make_prefix()) is None:
            return None
        return max(self._find_due_time(self.folder, prefix), self._not_before)

    def run_due(self, now: datetime) -> ChoreStatus | None:
        """Make a backup if one is due; return its status, or that of the failure.

        Returns None if none is due, or if another process makes it. What a killed process left
        unfinished is removed. Raises StorageError if the database cannot be read.
        """
        due_at = self.find_next_time()
        if self.folder is None or due_at is None or due_at > now:
            return None
        began = self.store.events.clock()
        try:
            with translate_storage_errors(self.store.name):
                made = self._run(self.folder, now)
        except Exception as error:  # noqa: BLE001 - other work goes on, whatever the error
            reason = str(error) if isinstance(error, CutbankError) else repr(error)
            wait = min(FIRST_BACKOFF * 2 ** min(self.failures, 10), MAX_BACKOFF)
            self.failures += 1
            self._not_before = next_at = self.store.events.clock() + min(wait, self._interval)
            return _describe_run(self, began, "failed", " ".join(reason.split()), next_at)
        if made is None:
            self._not_before = now + _BUSY_PAUSE
            return None
        self.failures, self._not_before = 0, DUE_NOW
        remark = f"{made.name}, {made.stat().st_size:,} bytes"
        next_at = read_moment(made.name) + self._interval
        return _describe_run(self, began, "done", remark, next_at)

    def read_status(self) -> list[ChoreStatus]:
        """Return the status by what is in the folder; nothing if no backups are made."""
        if self.folder is None or (prefix := self._make_prefix()) is None:
            return []
        due_at = max(self._find_due_time(self.folder, prefix), self._not_before)
        newest = self._find_newest(self.folder, prefix)
        return [
            ChoreStatus(
                last_run=newest,
                took_s=None,
                outcome="failed" if self.failures else "done" if newest else None,
                reason=None if self.folder.is_dir() else f"{self.folder} is not a folder: make it",
                failures=self.failures,
                next_at=None if due_at == DUE_NOW else due_at,
            )
        ]

    def _run(self, folder: Path, now: datetime) -> Path | None:
        """Make a backup and remove the oldest; return None if another process is faster."""
        prefix = self._make_prefix()
        assert prefix is not None, "the log had events just now"
        try:
            with _try_lock(folder / f".{prefix}lock") as is_alone:
                if not is_alone or self._find_due_time(folder, prefix) > now:
                    return None
                for name in find_own_files(_list_files(folder), prefix, is_unfinished=True):
                    (folder / name).unlink(missing_ok=True)
                made = self._make_backup(folder, prefix)
                for name in list_superfluous(_list_files(folder), prefix, made.name, self._keep):
                    (folder / name).unlink(missing_ok=True)
                return made
        except OSError as error:
            raise StorageError(
                f"no backup can be kept in {folder}: {error.strerror or error}; "
                "check the folder, or set maintenance.backup_folder"
            ) from error

    def _find_due_time(self, folder: Path, prefix: str) -> datetime:
        newest = self._find_newest(folder, prefix)
        return DUE_NOW if newest is None else newest + self._interval

    def _find_newest(self, folder: Path, prefix: str) -> datetime | None:
        # A machine's clock may be ahead of others, but a time further ahead than this was wrong.
        latest = self.store.events.clock() + self._interval
        try:
            names = _list_files(folder)
        except OSError:
            return None  # making a backup reports it
        moments = map(read_moment, find_own_files(names, prefix))
        return max((moment for moment in moments if moment <= latest), default=None)

    def _make_prefix(self) -> str | None:
        """Return a prefix such as `sessions-1f2e3d4c-`, so that several logs may share a folder.

        It is made from the log's place and first event, so that copies have their own. None if the
        log is empty.
        """
        address = self.store.name
        path = None if is_postgres(address) else find_database_path(address)
        with translate_storage_errors(address):
            first = self.store.events.recorder.select_notifications(1, 1)
        if not first:
            return None
        mark = blake2b(f"{path or address}\n".encode(), digest_size=4)
        mark.update(f"{first[0].originator_id}\n".encode() + first[0].state)
        called = path.stem if path else address.partition("?")[0].rpartition("/")[2]
        return f"{_NOT_FOR_NAMES.sub('_', called)[:80] or 'log'}-{mark.hexdigest()}-"

    def _make_backup(self, folder: Path, prefix: str) -> Path:
        newest = self.store.events.recorder.max_notification_id()
        moment = self.store.events.clock().astimezone(UTC)
        while (target := folder / f"{prefix}{moment.strftime(_MOMENT)}.db").exists():
            moment += timedelta(seconds=1)
        unfinished = Path(f"{target}{UNFINISHED}")
        try:
            self.store.backup(unfinished)
            _check_backup(unfinished, newest)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        unfinished.rename(target)
        _sync_folder(folder)
        return target


def find_own_files(names: Iterable[str], prefix: str, *, is_unfinished: bool = False) -> list[str]:
    """Return the names of one log's backups, oldest first, or of files that are not finished."""
    ending = rf"{re.escape(UNFINISHED)}(-journal|-wal|-shm)?" if is_unfinished else ""
    own = re.compile(rf"{re.escape(prefix)}[0-9]{{8}}T[0-9]{{6}}Z\.db{ending}")
    return sorted(name for name in names if own.fullmatch(name))


def list_superfluous(names: Iterable[str], prefix: str, made: str, keep: int) -> list[str]:
    """Return the oldest backups beyond `keep`; never the one just made, whatever the clock says."""
    others = [name for name in find_own_files(names, prefix) if name != made]
    return others[: max(0, len(others) - (keep - 1))]


def read_moment(name: str) -> datetime:
    """Return when a backup was made, by its name."""
    moment = name.removesuffix(".db").rpartition("-")[2]
    try:
        return datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)
    except ValueError:  # a name such as no backup has
        return DUE_NOW


@contextmanager
def _try_lock(file: Path) -> Iterator[bool]:
    """Try to lock an empty file with SQLite's own locks; yield whether that succeeded."""
    make_file(file)
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as held:
        try:
            held.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            yield False
        else:
            yield True


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


def _list_files(folder: Path) -> list[str]:
    return [found.name for found in folder.iterdir() if found.is_file() and not found.is_symlink()]


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name is on disk before an old one goes."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Retention:
    """What the settings, section `retention`, say of one store; any number of workers may do it."""

    name = "retention"

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self._next_at = DUE_NOW
        self.failures = 0

    def find_next_time(self) -> datetime | None:
        """Return when to look for old sessions, possibly in the past; None if all are kept."""
        return None if self.store.settings.retention.keeps_all else self._next_at

    def run_due(self, now: datetime) -> ChoreStatus | None:
        """Erase what is too old; return a status if there was anything, or if that failed.

        Others go on meanwhile: on a server, free space is overwritten as it is used again.
        """
        due_at = self.find_next_time()
        if due_at is None or due_at > now:
            return None
        began = self.store.events.clock()
        self._next_at = now + CHECK_INTERVAL
        try:
            report = apply_retention(self.store.context, by="retention", rewrite=False)
        except NotFoundError:
            return None  # another worker was faster
        except CutbankError as error:
            self.failures += 1
            self._next_at = now + FIRST_BACKOFF
            return _describe_run(self, began, "failed", str(error), self._next_at)
        self.failures = 0
        if not report.sessions:
            return None
        remark = f"{len(report.sessions):,} sessions, {report.content.bytes:,} bytes"
        return _describe_run(self, began, "done", remark, self._next_at)


def _describe_run(
    chore: Backups | Retention,
    began: datetime,
    outcome: Literal["done", "failed"],
    reason: str,
    next_at: datetime,
) -> ChoreStatus:
    took_s = (chore.store.events.clock() - began).total_seconds()
    return ChoreStatus(began, took_s, outcome, reason, chore.failures, next_at, chore.name)


def run_maintenance(store: SessionStore) -> list[ChoreStatus]:
    """Make a backup if one is due, erase what is too old, and return the status of each.

    The settings, sections `maintenance` and `retention`, say what is due.
    """
    now = store.events.clock()
    ran = (Backups(store).run_due(now), Retention(store).run_due(now))
    return [one for one in ran if one is not None]

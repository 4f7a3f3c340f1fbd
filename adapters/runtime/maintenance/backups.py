"""Makes backups at intervals, checks each one, and only then removes the oldest."""

import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, timedelta
from hashlib import blake2b
from pathlib import Path

from ....domain.errors import StorageError
from ...storage.event_log.addresses import is_postgres
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.sqlite import sqlite_schema
from ...storage.sqlite.database_file import find_database_path
from ..sessions.session_store import SessionStore

UNFINISHED = ".unfinished"
_MOMENT = "%Y%m%dT%H%M%SZ"
_NOT_FOR_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def rotate_backups(store: SessionStore, folder: Path, keep: int) -> str:
    """Make a backup, and remove the oldest; return a remark.

    What a killed process left unfinished is removed as well.
    """
    newest = store.events.recorder.max_notification_id()
    if not newest:
        return "the log is empty"
    try:
        prefix = _make_prefix(store)
        for name in find_own_files(_list_files(folder), prefix, is_unfinished=True):
            (folder / name).unlink(missing_ok=True)
        made = _make_backup(store, folder, prefix, newest)
        for name in list_superfluous(_list_files(folder), prefix, made.name, keep):
            (folder / name).unlink(missing_ok=True)
        return f"{made.name}, {made.stat().st_size:,} bytes"
    except OSError as error:
        raise StorageError(
            f"no backup can be kept in {folder}: {error.strerror or error}; "
            "check the folder, or set maintenance.backup_folder"
        ) from error


def find_own_files(names: Iterable[str], prefix: str, *, is_unfinished: bool = False) -> list[str]:
    """Return the names of one log's backups, oldest first, or of files that are not finished."""
    ending = rf"{re.escape(UNFINISHED)}(-journal|-wal|-shm)?" if is_unfinished else ""
    own = re.compile(rf"{re.escape(prefix)}[0-9]{{8}}T[0-9]{{6}}Z\.db{ending}")
    return sorted(name for name in names if own.fullmatch(name))


def list_superfluous(names: Iterable[str], prefix: str, made: str, keep: int) -> list[str]:
    """Return the oldest backups beyond `keep`; never the one just made, whatever the clock says."""
    others = [name for name in find_own_files(names, prefix) if name != made]
    return others[: max(0, len(others) - (keep - 1))]


def _make_prefix(store: SessionStore) -> str:
    """Return a prefix such as `sessions-1f2e3d4c-`, so that several logs may share a folder.

    It is made from the log's place and first event, so that copies have their own.
    """
    address = store.name
    path = None if is_postgres(address) else find_database_path(address)
    (first,) = store.events.recorder.select_notifications(1, 1)
    mark = blake2b(f"{path or address}\n".encode(), digest_size=4)
    mark.update(f"{first.originator_id}\n".encode() + first.state)
    called = path.stem if path else address.partition("?")[0].rpartition("/")[2]
    return f"{_NOT_FOR_NAMES.sub('_', called)[:80] or 'log'}-{mark.hexdigest()}-"


def _make_backup(store: SessionStore, folder: Path, prefix: str, newest: int) -> Path:
    moment = store.events.clock().astimezone(UTC)
    while (target := folder / f"{prefix}{moment.strftime(_MOMENT)}.db").exists():
        moment += timedelta(seconds=1)
    unfinished = Path(f"{target}{UNFINISHED}")
    try:
        store.backup(unfinished)
        _check_backup(unfinished, newest)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.rename(target)
    _sync_folder(folder)
    return target


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

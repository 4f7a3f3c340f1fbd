"""Maintains an SQLite log's file, in short transactions between those of its writers."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from ..event_log.log_names import LogNames
from ..event_log.storage_errors import translate_storage_errors
from ..event_log.storage_tasks import DatabaseTaskResult, RunStatement, Storage
from ..private_files import make_file
from .database_file import check_and_save_identity, find_database_path, refuse_damaged
from .sqlite_datastore import LOCK_TIMEOUT_SECONDS, SQLiteLogDatastore
from .sqlite_schema import is_current_schema
from .wal_mode import has_wal_mode, refuse_foreign_wal


class SQLiteStorage(Storage):
    """Stores the records in the log itself, so a restored backup has its own."""

    task_name = "checkpoint"
    BODY_SIZE = "length(content)"
    FIND_RECORDS = "SELECT count(*) FROM sqlite_master WHERE name = 'chores'"
    datastore: SQLiteLogDatastore

    def __init__(self, datastore: SQLiteLogDatastore, path: Path, names: LogNames) -> None:
        super().__init__(datastore, names)
        self.path = path

    def try_lock(self) -> AbstractContextManager[bool]:
        return try_lock_file(Path(f"{self.path}-chores"))

    @contextmanager
    def change_records(self) -> Iterator[RunStatement]:
        with self.datastore.writing_transaction() as writer:
            writer.execute(TASK_TABLE)
            yield lambda statement, values: writer.execute(statement, values).rowcount

    def run_database_task(self) -> DatabaseTaskResult:
        """Copy the write-ahead log into the file, and truncate it if no process reads it.

        A file at rest has none. After truncating, it writes a little: a copy of a file in WAL mode
        with an empty log would look as if it had lost its newest events.
        """
        connection = self.datastore.reader
        if not has_wal_mode(connection):
            return DatabaseTaskResult(note="nobody writes to it")
        return truncate_wal(connection, self.path)


def truncate_wal(connection: sqlite3.Connection, path: Path) -> DatabaseTaskResult:
    """Checkpoint without blocking others; skip the truncation if another process is reading."""
    before = _wal_size(path)
    _, pages, written = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if written < pages:
        return DatabaseTaskResult(
            note=f"a reader holds on to {pages - written} of its {pages} pages"
        )
    with _skip_waiting(connection):
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return DatabaseTaskResult(
        max(0, before - _wal_size(path)), "somebody reads or writes" if is_busy else None
    )


@contextmanager
def _skip_waiting(connection: sqlite3.Connection) -> Iterator[None]:
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")


def _wal_size(path: Path) -> int:
    try:
        return Path(f"{path}-wal").stat().st_size
    except OSError:
        return 0


TASK_TABLE = """
CREATE TABLE IF NOT EXISTS chores (
    name TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""
"""Made on demand, and not part of the format: without it, all tasks run again."""


def read_task_records(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the newest record of each task; changes nothing."""
    try:
        return dict(connection.execute("SELECT name, record FROM chores").fetchall())
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return {}


def save_task_record(connection: sqlite3.Connection, chore: str, record: str) -> None:
    """Save a task's record, in the open transaction."""
    connection.execute(TASK_TABLE)
    connection.execute("INSERT OR REPLACE INTO chores VALUES (?, ?)", (chore, record))


@contextmanager
def try_lock_file(file: Path) -> Iterator[bool]:
    """Try to lock an empty file within this context; yield whether that succeeded.

    The lock is SQLite's, which ends with its holder.
    """
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


def adopt_copy(name: str) -> None:
    """Accept the database in its new file. Raises StorageError if its pages are damaged."""
    path = find_database_path(name)
    if path is None or not path.exists():
        return
    with translate_storage_errors(name):
        refuse_foreign_wal(path)
        connection = sqlite3.connect(path, isolation_level=None, timeout=LOCK_TIMEOUT_SECONDS)
        try:
            is_current_schema(connection, name)
            refuse_damaged(connection, path)
            check_and_save_identity(connection, path)
        finally:
            connection.close()

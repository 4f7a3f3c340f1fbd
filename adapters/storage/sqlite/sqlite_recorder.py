"""Keeps the log in an SQLite file, and maintains the file between the writes of others."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ..event_log.log_tables import TableRows
from ..event_log.recorder import TASK_TABLE, DatabaseTaskResult, Recorder, RunStatement
from ..event_log.storage_errors import translate_storage_errors
from ..private_files import make_file
from .database_file import check_and_save_identity, find_database_path, refuse_damaged
from .group_commit import GroupCommit, PendingWrite
from .sqlite_datastore import LOCK_TIMEOUT_SECONDS, SQLiteLogDatastore
from .sqlite_schema import is_current_schema
from .wal_mode import has_wal_mode, refuse_foreign_wal


def open_sqlite(name: str, synchronous: str) -> "SQLiteRecorder":
    return SQLiteRecorder(SQLiteLogDatastore(name, synchronous=synchronous))


class SQLiteRecorder(Recorder):
    """The log in one SQLite file.

    Ids are 16 bytes. Notification ids are never reused, since they grow with the log and no event
    is ever deleted.
    """

    BODY_SIZE = "length(content)"
    FIND_RECORDS = "SELECT count(*) FROM sqlite_master WHERE name = 'chores'"
    datastore: SQLiteLogDatastore

    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        super().__init__(datastore)
        self.group_commit = GroupCommit(datastore)

    def insert_rows(self, rows: TableRows) -> Sequence[int]:
        return self.group_commit.store(PendingWrite(rows))

    def insert_all_rows(self, batches: Iterable[TableRows]) -> None:
        try:
            with self.datastore.writing_transaction() as writer:
                for rows in batches:
                    PendingWrite(rows).insert(writer)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error

    def encode_id(self, id: UUID) -> bytes:
        return id.bytes

    def decode_id(self, stored: bytes) -> UUID:
        return UUID(bytes=stored)

    def max_notification_id(self) -> int:
        found = self.datastore.read("SELECT max(notification_id) FROM stored_events")
        return found[0][0] or 0

    def read_change_marker(self) -> object:
        """Return the data version, which changes with each commit of another connection."""
        return self.datastore.read("PRAGMA data_version")

    def find_problems(self) -> list[str]:
        found = self.datastore.read("PRAGMA quick_check")
        return [" ".join(line.split()) for (line,) in found if line != "ok"]

    def backup(self, target: Path) -> None:
        self.datastore.backup(target)

    @property
    def database_task(self) -> str | None:
        return "checkpoint" if self.datastore.path else None

    def try_lock(self) -> AbstractContextManager[bool]:
        return try_lock_file(Path(f"{self.datastore.path}-chores"))

    @contextmanager
    def change_records(self) -> Iterator[RunStatement]:
        """Keep the records in the log itself, so that a restored backup has its own."""
        with self.datastore.writing_transaction() as writer:
            writer.execute(TASK_TABLE)
            yield lambda statement, values: writer.execute(statement, values).rowcount

    def run_database_task(self) -> DatabaseTaskResult:
        """Copy the write-ahead log into the file, and truncate it if no process reads it.

        A file at rest has none. After truncating, it writes a little: a copy of a file in WAL mode
        with an empty log would look as if it had lost its newest events.
        """
        connection, path = self.datastore.reader, self.datastore.path
        if path is None or not has_wal_mode(connection):
            return DatabaseTaskResult(note="nobody writes to it")
        return truncate_wal(connection, path)

    def reopen_in_child(self) -> None:
        super().reopen_in_child()
        self.group_commit.waiting.clear()


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

"""Keeps an SQLite log's file in order, in short transactions among those of its writers."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..event_log.log_names import LogNames
from ..event_log.storage_tasks import DatabaseTaskResult, RecompressedBody, StoredBody
from .lock_file import try_lock_file
from .sqlite_datastore import SQLiteLogDatastore
from .task_records import read_task_records, save_task_record
from .wal_mode import has_wal_mode

_REPLACE_BODY = "UPDATE bodies SET content = ? WHERE id = ? AND key_id IS NULL AND content = ?"


class SQLiteStorage:
    """The records are a table of the log itself: a backup that is restored has its own."""

    task_name = "checkpoint"

    def __init__(self, datastore: SQLiteLogDatastore, path: Path, names: LogNames) -> None:
        self.datastore = datastore
        self.path = path
        self.names = names

    def try_lock(self) -> AbstractContextManager[bool]:
        return try_lock_file(Path(f"{self.path}-chores"))

    def read_records(self) -> Mapping[str, str]:
        return read_task_records(self.datastore.reader)

    def save_record(self, chore: str, record: str) -> None:
        with self.datastore.writing_transaction() as writer:
            save_task_record(writer, chore, record)

    def select_body(self, subject: str, digest: bytes) -> StoredBody | None:
        """A subject's body; None where there is none, or where it is in cipher."""
        found = self.datastore.read_one(
            "SELECT id, content, length(content) FROM bodies"
            " WHERE subject = ? AND hash = ? AND key_id IS NULL",
            (self.names.subject(subject)[0], digest),
        )
        return StoredBody(*found) if found else None

    def replace_bodies(self, smaller: Sequence[RecompressedBody], chore: str, record: str) -> int:
        """Store what is smaller, and the record, in one short transaction."""
        saved = 0
        with self.datastore.writing_transaction() as writer:
            for body, content in smaller:
                done = writer.execute(_REPLACE_BODY, (content, body.id, body.content))
                saved += done.rowcount * (body.size - len(content))
            save_task_record(writer, chore, record)
        return saved

    def run_database_task(self) -> DatabaseTaskResult:
        """Write the log that stands beside the file into it, and cut it off if nobody reads there.

        A file at rest has none. Whoever cuts it off has to write a little afterwards: a file in use
        with nothing beside it is taken for one that has lost its newest events, once it is copied.
        """
        connection = self.datastore.reader
        if not has_wal_mode(connection):
            return DatabaseTaskResult(note="nobody writes to it")
        return truncate_wal(connection, self.path)


def truncate_wal(connection: sqlite3.Connection, path: Path) -> DatabaseTaskResult:
    """Nobody waits for the first part; the second is not done where anybody is in the way."""
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

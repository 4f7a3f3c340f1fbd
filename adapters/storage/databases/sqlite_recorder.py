"""Writes the log to an SQLite file; concurrent appends share a commit."""

import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ..event_log.log_tables import EVENTS, TABLES, TableRows
from ..event_log.recorder import Recorder
from ..event_log.storage_errors import translate_storage_errors
from .database_file import check_and_save_identity, find_database_path, refuse_damaged
from .sqlite_datastore import LOCK_TIMEOUT_SECONDS, SQLiteLogDatastore
from .sqlite_schema import is_current_schema
from .wal_mode import refuse_foreign_wal

_INSERTS = {
    name: f"INSERT INTO {name} ({', '.join(table.columns)})"  # noqa: S608 - our names
    f" VALUES ({', '.join('?' * len(table.columns))}){table.on_conflict}"
    for name, table in TABLES.items()
}


class PendingWrite:
    """The rows that one call stores, and its result."""

    __slots__ = ("error", "ids", "is_done", "rows")

    def __init__(self, rows: TableRows) -> None:
        self.rows = rows
        self.ids: Sequence[int] = ()
        self.error: Exception | None = None
        self.is_done = False

    def fail(self, error: Exception) -> None:
        is_conflict = isinstance(error, sqlite3.IntegrityError)
        self.error = IntegrityError(error) if is_conflict else error

    def insert(self, writer: sqlite3.Connection) -> None:
        """Insert within a transaction."""
        for table, rows in self.rows.items():
            writer.executemany(_INSERTS[table], rows)
        # One transaction's ids are consecutive, as there is only one writer at a time.
        if count := len(self.rows.get(EVENTS, ())):
            newest = writer.execute("SELECT last_insert_rowid()").fetchone()[0]
            self.ids = range(newest - count + 1, newest + 1)


class GroupCommit:
    """The first thread to commit stores the writes of all waiting threads."""

    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        self.datastore = datastore
        self.waiting: deque[PendingWrite] = deque()

    def store(self, write: PendingWrite) -> Sequence[int]:
        """Store the write, in this thread or another; raise its error if it is refused."""
        self.waiting.append(write)
        with self.datastore.writing:
            if not write.is_done:
                self._commit_waiting(write)
        if write.error is not None:
            raise write.error
        return write.ids

    def _commit_waiting(self, own: PendingWrite) -> None:
        writes = []
        while self.waiting:
            writes.append(self.waiting.popleft())
        try:
            self._insert(writes)
        except Exception as error:  # noqa: BLE001 - raised again by the thread whose write it is
            if len(writes) == 1:
                writes[0].fail(error)
            else:
                self._insert_each(writes)
        except BaseException:
            # Only this thread was interrupted.
            others = [write for write in writes if write is not own]
            self.waiting.extend(write for write in others if not self._is_stored(write))
            raise
        for write in writes:
            write.is_done = True

    def _insert_each(self, writes: list[PendingWrite]) -> None:
        """Store the writes one by one, since at least one of them will be refused."""
        for write in writes:
            try:
                self._insert([write])
            except Exception as error:  # noqa: BLE001 - as above
                write.fail(error)

    def _insert(self, writes: list[PendingWrite]) -> None:
        """Store all of these in one transaction, or nothing."""
        rows = writes[0].rows
        if len(writes) == 1 and len(rows) == 1 and len(rows.get(EVENTS, ())) == 1:
            self.datastore.check_file()
            # A single row commits by itself, without BEGIN and COMMIT.
            number = self.datastore.writer.execute(_INSERTS[EVENTS], rows[EVENTS][0]).lastrowid
            writes[0].ids = (cast(int, number),)
            return
        with self.datastore.writing_transaction() as writer:
            for write in writes:
                write.insert(writer)

    def _is_stored(self, write: PendingWrite) -> bool:
        """Return whether the commit succeeded just before the interrupt."""
        for id, version, *_, digest, _, _ in write.rows.get(EVENTS, ())[:1]:
            query = "SELECT digest FROM stored_events WHERE originator_id = ?"
            query += " AND originator_version = ?"
            found = self.datastore.writer.execute(query, (id, version)).fetchone()
            write.is_done = found == (digest,)
        return write.is_done


class SQLiteTransaction:
    """The writer inside a transaction, in which no one else writes at all."""

    def __init__(self, writer: sqlite3.Connection) -> None:
        self._writer = writer

    def insert(self, rows: TableRows) -> None:
        PendingWrite(rows).insert(self._writer)

    def execute(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self._writer.execute(query, parameters).fetchall()

    def execute_many(self, query: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._writer.executemany(query, rows)

    def lock_contents(self) -> None:
        pass


def open_sqlite(name: str, synchronous: str) -> "SQLiteRecorder":
    return SQLiteRecorder(SQLiteLogDatastore(name, synchronous=synchronous))


class SQLiteRecorder(Recorder):
    """The log in one SQLite file.

    Ids are 16 bytes. Notification ids are never reused, since they grow with the log and no event
    is ever deleted.
    """

    datastore: SQLiteLogDatastore

    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        super().__init__(datastore)
        self.is_in_memory = datastore.path is None
        self.group_commit = GroupCommit(datastore)

    def insert_rows(self, rows: TableRows) -> Sequence[int]:
        if not self.datastore.is_batching:
            return self.group_commit.store(PendingWrite(rows))
        write = PendingWrite(rows)
        self._insert_in_batch([write])
        return write.ids

    def insert_all_rows(self, batches: Iterable[TableRows]) -> None:
        self._insert_in_batch(map(PendingWrite, batches))

    def _insert_in_batch(self, writes: Iterable[PendingWrite]) -> None:
        try:
            with self.datastore.batch():
                for write in writes:
                    write.insert(self.datastore.writer)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error

    @contextmanager
    def transaction(self) -> Iterator["SQLiteTransaction"]:
        try:
            with self.datastore.batch():
                yield SQLiteTransaction(self.datastore.writer)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error

    def purge(self, *, rewrite: bool) -> None:  # noqa: ARG002 - nothing less removes the bytes
        self.datastore.rewrite_file()

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

    def reopen_in_child(self) -> None:
        super().reopen_in_child()
        self.group_commit.waiting.clear()


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

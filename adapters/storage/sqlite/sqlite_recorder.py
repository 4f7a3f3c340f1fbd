"""Writes the log to an SQLite file; concurrent appends share a commit and its wait for the disk."""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError, OperationalError

from ....domain.ranges import Run
from ..event_log.log_tables import EVENTS_TABLE, LOG_TABLES, TableRows
from ..event_log.recorder import ROW_COLUMNS, Recorder
from .sqlite_datastore import SQLiteLogDatastore
from .sqlite_storage import SQLiteStorage

_INSERTS = {
    table: f"INSERT INTO {table.name} ({', '.join(table.column_names)})"  # noqa: S608 - our names
    f" VALUES ({', '.join('?' * len(table.column_names))}){table.on_conflict}"
    for table in LOG_TABLES
}
_INSERT_EVENT = _INSERTS[EVENTS_TABLE]


class PendingWrite:
    """The rows that one call stores, and its result."""

    __slots__ = ("error", "ids", "is_done", "rows")

    def __init__(self, rows: TableRows) -> None:
        self.rows = rows
        self.ids: Sequence[int] = ()
        self.error: Exception | None = None
        self.is_done = False

    @property
    def is_one_row(self) -> bool:
        return len(self.rows) == 1 and len(self.rows.get(EVENTS_TABLE, ())) == 1

    def fail(self, error: Exception) -> None:
        match error:
            case sqlite3.IntegrityError():
                self.error = IntegrityError(error)
            case sqlite3.OperationalError():
                self.error = OperationalError(error)
            case _:
                self.error = error

    def insert_alone(self, writer: sqlite3.Connection) -> None:
        """Insert a single row, which commits by itself without BEGIN and COMMIT."""
        (row,) = self.rows[EVENTS_TABLE]
        self.ids = (cast(int, writer.execute(_INSERT_EVENT, row).lastrowid),)

    def insert(self, writer: sqlite3.Connection) -> None:
        """Insert within a transaction."""
        for table, rows in self.rows.items():
            writer.executemany(_INSERTS[table], rows)
        # One transaction's ids are consecutive, as there is only one writer at a time.
        if count := len(self.rows.get(EVENTS_TABLE, ())):
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
        if len(writes) == 1 and writes[0].is_one_row:
            self.datastore.check_file()
            writes[0].insert_alone(self.datastore.writer)
            return
        with self.datastore.writing_transaction() as writer:
            for write in writes:
                write.insert(writer)

    def _is_stored(self, write: PendingWrite) -> bool:
        """Return whether the commit succeeded just before the interrupt."""
        for id, version, *_, digest, _, _ in write.rows.get(EVENTS_TABLE, ())[:1]:
            query = "SELECT digest FROM stored_events WHERE originator_id = ?"
            query += " AND originator_version = ?"
            found = self.datastore.writer.execute(query, (id, version)).fetchone()
            write.is_done = found == (digest,)
        return write.is_done


def open_sqlite(name: str, synchronous: str) -> "SQLiteRecorder":
    return SQLiteRecorder(SQLiteLogDatastore(name, synchronous=synchronous))


class SQLiteRecorder(Recorder):
    """The log in one SQLite file.

    Ids are 16 bytes. Notification ids are never reused, since they grow with the log and no event
    is ever deleted.
    """

    SELECT_RUNS = (
        f"SELECT {ROW_COLUMNS}"  # noqa: S608 - our names
        " FROM json_each(?) AS run CROSS JOIN stored_events"
        " ON originator_id = ? AND originator_version"
        " BETWEEN json_extract(run.value, '$[0]') AND json_extract(run.value, '$[1]')"
        " ORDER BY originator_version"
    )
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

    def encode_runs(self, runs: Sequence[Run]) -> tuple[str]:
        return (json.dumps(runs),)

    def max_notification_id(self) -> int:
        found = self.datastore.read("SELECT max(notification_id) FROM stored_events")
        return found[0][0] or 0

    def read_change_marker(self) -> object:
        """Return the data version, which changes with each commit of another connection."""
        return self.datastore.read("PRAGMA data_version")

    def get_storage(self) -> SQLiteStorage | None:
        path = self.datastore.path
        return SQLiteStorage(self.datastore, path, self.names) if path else None

    def find_problems(self) -> list[str]:
        found = self.datastore.read("PRAGMA quick_check")
        return [" ".join(line.split()) for (line,) in found if line != "ok"]

    def backup(self, target: Path) -> None:
        self.datastore.backup(target)

    def reopen_in_child(self) -> None:
        super().reopen_in_child()
        self.group_commit.waiting.clear()

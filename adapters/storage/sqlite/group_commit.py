"""Stores rows in an SQLite file; concurrent appends share a commit and its wait for the disk."""

import sqlite3
from collections import deque
from collections.abc import Sequence
from typing import cast

from eventsourcing.persistence import IntegrityError, OperationalError

from ..event_log.log_tables import EVENTS_TABLE, LOG_TABLES, TableRows
from .sqlite_datastore import SQLiteLogDatastore

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

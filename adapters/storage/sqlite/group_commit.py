"""Lets concurrent appends share a commit and its wait for the disk."""

import sqlite3
from collections import deque
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError, OperationalError

from ..event_log.stored_row import AppendKey, ImportRow, StoredRow, Stream
from .sqlite_datastore import SQLiteLogDatastore

INSERT_EVENT = (
    "INSERT INTO stored_events (originator_id, originator_version, topic, subject, key_id,"
    " tokens, digest, carried, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_BODY = "INSERT OR IGNORE INTO bodies (subject, hash, content) VALUES (?, ?, ?)"
INSERT_KEY = "INSERT INTO append_keys (originator_id, key, first, last) VALUES (?, ?, ?, ?)"
INSERT_STREAM = (
    "INSERT INTO streams (originator_id, namespace, session, lineage) VALUES (?, ?, ?, ?)"
)
INSERT_IMPORT = (
    "INSERT OR REPLACE INTO imports (namespace, source, format, session, bytes, complete, stamp)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class PendingWrite:
    """The rows of one call, with its keys, streams and imports, and its result."""

    __slots__ = ("error", "ids", "imports", "is_done", "keys", "parameters", "rows", "streams")

    def __init__(
        self,
        rows: Sequence[StoredRow],
        parameters: list[tuple[Any, ...]],
        keys: Sequence[AppendKey],
        streams: Sequence[Stream],
        imports: Sequence[ImportRow],
    ) -> None:
        self.rows = rows
        self.parameters = parameters
        """The values of each row, in the order of `INSERT_EVENT`."""
        self.keys = keys
        self.streams = streams
        self.imports = imports
        self.ids: Sequence[int] = ()
        self.error: Exception | None = None
        self.is_done = False

    @property
    def is_one_row(self) -> bool:
        others = self.keys or self.streams or self.imports
        return len(self.rows) == 1 and not (others or self.rows[0].bodies)

    def fail(self, error: Exception) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            self.error = IntegrityError(error)
        elif isinstance(error, sqlite3.OperationalError):
            self.error = OperationalError(error)
        else:
            self.error = error

    def insert_alone(self, writer: sqlite3.Connection) -> None:
        """Insert a single row, which commits by itself without BEGIN and COMMIT."""
        self.ids = (cast(int, writer.execute(INSERT_EVENT, self.parameters[0]).lastrowid),)

    def insert(self, writer: sqlite3.Connection) -> None:
        """Insert within a transaction."""
        for stream in self.streams:
            id = stream.originator_id.bytes
            writer.execute(INSERT_STREAM, (id, stream.namespace, stream.session, stream.lineage))
        for row, values in zip(self.rows, self.parameters, strict=True):
            for body in row.bodies:
                writer.execute(INSERT_BODY, (values[3], body.hash, body.content))
        writer.executemany(INSERT_EVENT, self.parameters)
        # One transaction's ids are consecutive, as there is only one writer at a time.
        count = len(self.rows)
        newest = writer.execute("SELECT last_insert_rowid()").fetchone()[0] if count else 0
        self.ids = range(newest - count + 1, newest + 1)
        for key in self.keys:
            writer.execute(INSERT_KEY, (key.originator_id.bytes, key.key, key.first, key.last))
        for record in self.imports:
            writer.execute(INSERT_IMPORT, record)


class GroupCommit:
    """The first thread to commit stores the writes of all waiting threads."""

    def __init__(self, datastore: SQLiteLogDatastore) -> None:
        self.datastore = datastore
        self.waiting: deque[PendingWrite] = deque()

    def store(self, write: PendingWrite) -> None:
        """Store the write, in this thread or another; raise its error if it is refused."""
        self.waiting.append(write)
        with self.datastore.writing:
            if not write.is_done:
                self._commit_waiting(write)
        if write.error is not None:
            raise write.error

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
        for row in write.rows[:1]:
            found = self._read_digest(row.originator_id, row.originator_version)
            write.is_done = found == row.digest
        return write.is_done

    def _read_digest(self, originator_id: UUID, version: int) -> bytes | None:
        found = self.datastore.writer.execute(
            "SELECT digest FROM stored_events WHERE originator_id = ? AND originator_version = ?",
            (originator_id.bytes, version),
        ).fetchone()
        return bytes(found[0]) if found else None

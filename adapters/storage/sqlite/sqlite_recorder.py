"""Writes the log to an SQLite file; concurrent appends share a commit and its wait for the disk."""

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError, OperationalError

from ....domain.ranges import Run
from ..event_log.recorder import ROW_COLUMNS, Recorder
from ..event_log.stored_row import Batch
from .sqlite_datastore import SQLiteLogDatastore
from .sqlite_storage import SQLiteStorage

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
    """What one call stores, and its result."""

    __slots__ = ("batch", "error", "ids", "is_done", "parameters")

    def __init__(self, batch: Batch, parameters: list[tuple[Any, ...]]) -> None:
        self.batch = batch
        self.parameters = parameters
        """The values of each row, in the order of `INSERT_EVENT`."""
        self.ids: Sequence[int] = ()
        self.error: Exception | None = None
        self.is_done = False

    @property
    def is_one_row(self) -> bool:
        it = self.batch
        return len(it.rows) == 1 and not (it.keys or it.streams or it.imports or it.rows[0].bodies)

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
        it = self.batch
        for stream in it.streams:
            id = stream.originator_id.bytes
            writer.execute(INSERT_STREAM, (id, stream.namespace, stream.session, stream.lineage))
        for row, values in zip(it.rows, self.parameters, strict=True):
            for body in row.bodies:
                writer.execute(INSERT_BODY, (values[3], body.hash, body.content))
        writer.executemany(INSERT_EVENT, self.parameters)
        # One transaction's ids are consecutive, as there is only one writer at a time.
        count = len(it.rows)
        newest = writer.execute("SELECT last_insert_rowid()").fetchone()[0] if count else 0
        self.ids = range(newest - count + 1, newest + 1)
        for key in it.keys:
            writer.execute(INSERT_KEY, (key.originator_id.bytes, key.key, key.first, key.last))
        writer.executemany(INSERT_IMPORT, it.imports)


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
        for row in write.batch.rows[:1]:
            found = self.datastore.writer.execute(
                "SELECT digest FROM stored_events"
                " WHERE originator_id = ? AND originator_version = ?",
                (row.originator_id.bytes, row.originator_version),
            ).fetchone()
            write.is_done = found == (row.digest,)
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

    def insert_batch(self, batch: Batch) -> Sequence[int]:
        write = PendingWrite(batch, [self.make_values(row) for row in batch.rows])
        self.group_commit.store(write)
        return write.ids

    def insert_batches(self, batches: Iterable[Batch]) -> None:
        try:
            with self.datastore.writing_transaction() as writer:
                for it in batches:
                    PendingWrite(it, [self.make_values(row) for row in it.rows]).insert(writer)
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

    def read_server_time(self) -> None:
        """Return None: the clock is this machine's."""

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

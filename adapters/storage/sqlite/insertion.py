"""Builds the SQLite statements that store one call's rows, all or nothing."""

import sqlite3
from collections.abc import Sequence
from typing import Any, cast

from eventsourcing.persistence import IntegrityError, OperationalError

from ..event_log.recorder import AppendKey, ImportRow, Stream
from ..event_log.stored_row import StoredRow

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

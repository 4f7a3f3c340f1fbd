"""Writes the log to an SQLite file."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ....domain.ranges import Run
from ..event_log.recorder import ROW_COLUMNS, Recorder
from ..event_log.stored_row import AppendKey, Batch, ImportRow, StoredRow, Stream
from .group_commit import GroupCommit, PendingWrite
from .sqlite_datastore import SQLiteLogDatastore
from .sqlite_storage import SQLiteStorage


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

    def insert_events(  # type: ignore[override]  # a row has all that a StoredEvent has
        self,
        stored_events: Sequence[StoredRow],
        *,
        keys: Sequence[AppendKey] = (),
        streams: Sequence[Stream] = (),
        imports: Sequence[ImportRow] = (),
        **_: Any,
    ) -> Sequence[int]:
        values = [self.make_values(row) for row in stored_events]
        write = PendingWrite(stored_events, values, keys, streams, imports)
        self.group_commit.store(write)
        self.wake_subscriptions()
        return write.ids

    def insert_all(self, batches: Iterable[Batch]) -> None:
        try:
            with self.datastore.writing_transaction() as writer:
                for it in batches:
                    values = [self.make_values(row) for row in it.rows]
                    PendingWrite(it.rows, values, it.keys, it.streams, it.imports).insert(writer)
        except sqlite3.IntegrityError as error:
            raise IntegrityError(error) from error
        self.wake_subscriptions()

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

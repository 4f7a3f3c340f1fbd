"""Maintains a log on PostgreSQL, except for what the server does itself, and copies it to a file.

It does not VACUUM: autovacuum does, by the server's own rules and pace. Events never change, so the
log has nothing to vacuum; old versions of recompressed bodies go in the next round.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg import Connection

from ..event_log.log_tables import EVENTS_TABLE, LOG_TABLES
from ..event_log.storage_tasks import DatabaseTaskResult, RunStatement, Storage
from ..sqlite.sqlite_datastore import SQLiteLogDatastore as File
from .postgres_datastore import PostgresLogDatastore, connect, mark_parameters

_BATCH_ROWS = 200
COPIED_TABLES = {
    "topics": "id, topic",
    "subjects": "id, name, secret",
    **{table.name: ", ".join(table.column_names) for table in LOG_TABLES},
    "stored_events": ", ".join(("notification_id", *EVENTS_TABLE.column_names)),
    "bodies": "id, subject, hash, key_id, content",
}
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "originator_id": lambda id: id.bytes,
    "complete": int,
}
_MAKE_RECORDS = (
    'CREATE TABLE IF NOT EXISTS chores (name text COLLATE "C" PRIMARY KEY, record text NOT NULL)'
)
"""Not part of the format, as on SQLite; in the log, so that all machines see it."""


class PostgresStorage(Storage):
    """Lets one machine maintain the log at a time; backups have no records."""

    task_name = "statistics"
    BODY_SIZE = "pg_column_size(content)"
    FIND_RECORDS = "SELECT to_regclass('chores') IS NOT NULL"
    datastore: PostgresLogDatastore

    @contextmanager
    def try_lock(self) -> Iterator[bool]:
        """Try to lock the maintenance here; yield whether that succeeded.

        The lock has its own session. If that is lost midway, another process may begin: steps may
        then run twice, which is harmless.
        """
        with connect(self.datastore.address) as session:
            found = session.execute(
                "SELECT pg_try_advisory_lock(hashtextextended('cutbank chores ' || %s, 0))",
                (self.datastore.address.schema,),
            ).fetchone()
            yield bool(found and found[0])

    @contextmanager
    def change_records(self) -> Iterator[RunStatement]:
        self._make_records()
        with self.datastore.get_connection() as connection, connection.transaction():
            yield (
                lambda statement, values: (
                    connection.execute(mark_parameters(statement), values).rowcount
                )
            )

    def run_database_task(self) -> DatabaseTaskResult:
        """Update the planner's statistics; other sessions need not wait."""
        with self.datastore.get_connection() as connection:
            for table in COPIED_TABLES:
                connection.execute(f"ANALYZE {table}".encode())
        return DatabaseTaskResult()

    def _make_records(self) -> None:
        if self.has_records():
            return
        with self.datastore.get_connection() as connection, connection.transaction():
            # In PostgreSQL, concurrent creations of a table fail even with IF NOT EXISTS.
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('cutbank migrates ' || %s, 0))",
                (self.datastore.address.schema,),
            )
            connection.execute(_MAKE_RECORDS)


def copy_to_file(connection: Connection[Any], target: Path) -> None:
    """Copy the log as of one moment, in batches, while others go on writing."""
    try:
        _copy(connection, target)
    except BaseException:
        # A partial copy would look complete.
        for end in ("", "-wal", "-shm"):
            Path(f"{target}{end}").unlink(missing_ok=True)
        raise


def _copy(connection: Connection[Any], target: Path) -> None:
    file = File(str(target), synchronous="NORMAL")
    try:
        with connection.transaction(), file.writing_transaction() as writer:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for table, columns in COPIED_TABLES.items():
                _copy_table(connection, writer, table, columns)
    finally:
        file.close()
    # A single file that can be moved, like SQLite's own backups, and safely on disk.
    settled = sqlite3.connect(target)
    try:
        settled.execute("PRAGMA journal_mode = DELETE")
    finally:
        settled.close()


def _copy_table(
    connection: Connection[Any], writer: sqlite3.Connection, table: str, columns: str
) -> None:
    names = columns.split(", ")
    changed = [(at, _CONVERSIONS[name]) for at, name in enumerate(names) if name in _CONVERSIONS]
    order = "notification_id" if table == "stored_events" else names[0]
    query = f"SELECT {columns} FROM {table} ORDER BY {order}"  # noqa: S608 - our own names
    store = f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
    with connection.cursor(name=f"copy {table}", binary=True) as rows:
        rows.itersize = _BATCH_ROWS
        rows.execute(query.encode())
        while batch := rows.fetchmany(_BATCH_ROWS):
            kept = [list(row) for row in batch]
            for row in kept:
                for at, change in changed:
                    row[at] = change(row[at])
            writer.executemany(store, kept)

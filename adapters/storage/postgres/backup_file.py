"""Copies a log on PostgreSQL to an SQLite file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg import Connection

from ..event_log.log_tables import EVENTS, TABLES
from ..sqlite.sqlite_datastore import SQLiteLogDatastore as File

_BATCH_ROWS = 200
COPIED_TABLES = {
    "topics": "id, topic",
    "subjects": "id, name, secret",
    **{name: ", ".join(table.columns) for name, table in TABLES.items()},
}
COPIED_TABLES[EVENTS] = f"notification_id, {COPIED_TABLES[EVENTS]}"
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "originator_id": lambda id: id.bytes,
    "complete": int,
}


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
    query = f"SELECT {columns} FROM {table} ORDER BY {names[0]}"  # noqa: S608 - our own names
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

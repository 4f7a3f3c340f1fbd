"""Writes the log to PostgreSQL, and copies it to a file."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

from eventsourcing.persistence import IntegrityError, OperationalError
from psycopg import Connection

from ....domain.errors import StorageError
from ..event_log.addresses import PostgresAddress
from ..event_log.log_tables import (
    BODIES,
    EVENTS,
    IMPORTS,
    KEYS,
    RECORDS,
    SEGMENTS,
    STREAMS,
    TABLES,
    StoredRow,
    TableRows,
)
from ..event_log.recorder import Recorder
from .log_tail import LogTail
from .postgres_datastore import (
    RECONNECT_PAUSE,
    ConnectionLostError,
    PostgresLogDatastore,
    mark_parameters,
)
from .postgres_schema import POSTGRES_TYPES
from .sqlite_datastore import SQLiteLogDatastore as File

MAX_ATTEMPTS = 10
"""How often an append is retried after the server rolled it back for others."""
RETRYABLE_STATES = frozenset({"40001", "40P01"})
"""A serialization failure or deadlock, for which the server rolled the transaction back."""

SELECT_OWN = (
    "SELECT notification_id, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = ? AND originator_version = ?"
)
SNAPSHOT_QUERY = "SELECT pg_current_snapshot()::text"
NEWEST_TRANSACTION_QUERY = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
OLDER_READERS_QUERY = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND age(backend_xmin) > age(%s::xid8::xid) LIMIT 1"
)
"""A user sees the transactions of others only as a member of `pg_read_all_stats`."""
READER_SECONDS = 30.0
"""How long an erasure waits for transactions that began before it."""

RowValues = tuple[Any, ...]
MAX_VALUES_ROWS = 4
"""The most rows that are sent as single values; an array costs as much as ten values."""

_BATCH_ROWS = 200
COPIED_TABLES = {
    "topics": "id, topic",
    "subjects": "id, name, secret",
    **{name: ", ".join(table.columns) for name, table in TABLES.items()},
}
COPIED_TABLES[EVENTS] = f"notification_id, {COPIED_TABLES[EVENTS]}"
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "originator_id": lambda id: id.bytes,
    "parent": lambda id: id and id.bytes,
    "complete": int,
}


_ERASED_TABLES = (EVENTS, BODIES, SEGMENTS, KEYS, RECORDS, IMPORTS, STREAMS)


class PostgresTransaction:
    """This thread's connection inside a transaction."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._cursor = connection.cursor(binary=True)

    def insert(self, rows: TableRows) -> None:
        if rows:
            self._cursor.execute(*make_insertion(rows))

    def execute(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        self._cursor.execute(mark_parameters(query), parameters)
        return self._cursor.fetchall() if self._cursor.description else []

    def execute_many(self, query: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._cursor.executemany(mark_parameters(query), rows)

    def lock_contents(self) -> None:
        self.execute(f"LOCK TABLE {BODIES}, {SEGMENTS} IN SHARE ROW EXCLUSIVE MODE")


def open_postgres(address: str, synchronous: str) -> "PostgresRecorder":
    return PostgresRecorder(PostgresLogDatastore(PostgresAddress.parse(address), synchronous))


class PostgresRecorder(Recorder):
    """The log in a schema of a PostgreSQL server.

    Appends take no lock on the table: ids come from a sequence, and `tail` says up to which id none
    is still missing.
    """

    datastore: PostgresLogDatastore

    def __init__(self, datastore: PostgresLogDatastore) -> None:
        super().__init__(datastore)
        self.tail = LogTail(datastore)

    def insert_rows(self, rows: TableRows) -> Sequence[int]:
        """Store the rows in one statement, and return the ids of events.

        After a lost connection it checks whether they were stored, and repeats it if not.
        """
        query, parameters = make_insertion(rows)
        events = rows.get(EVENTS, ())
        if self.datastore.is_batching:
            with self.datastore.batch():
                answer = self.datastore.execute(query, parameters)
            return [row[0] for row in answer] if events else []
        may_be_there = False
        attempts = 0
        while True:
            attempts += 1
            try:
                answer = self.datastore.execute(query, parameters)
            except IntegrityError:
                if may_be_there and (own := self._find_own_ids(events)):
                    return own
                raise
            except ConnectionLostError:
                if attempts == MAX_ATTEMPTS:
                    raise
                # The server may still be working on it; then the next attempt waits for its end.
                may_be_there = True
                if own := self._find_own_ids(events):
                    return own
            except OperationalError as error:
                if attempts == MAX_ATTEMPTS or _error_state(error) not in RETRYABLE_STATES:
                    raise
            else:
                return [row[0] for row in answer] if events else []

    def insert_all_rows(self, batches: Iterable[TableRows]) -> None:
        with self.datastore.batch():
            for rows in batches:
                if rows:
                    self.datastore.execute(*make_insertion(rows))

    @contextmanager
    def transaction(self) -> Iterator["PostgresTransaction"]:
        with self.datastore.batch(), self.datastore.get_connection() as connection:
            yield PostgresTransaction(connection)

    def purge(self, *, rewrite: bool) -> None:
        statement = f"VACUUM {'(FULL) ' if rewrite else ''}{', '.join(_ERASED_TABLES)}"
        with self.datastore.get_connection() as connection:
            if rewrite:
                self._wait_for_readers(connection)
            connection.execute(statement.encode())

    def _wait_for_readers(self, connection: Connection[Any]) -> None:
        """Wait for transactions that still see what was erased, as no vacuum removes it from them.

        Raises StorageError if one goes on.
        """
        deadline = monotonic() + READER_SECONDS
        (newest,) = connection.execute(NEWEST_TRANSACTION_QUERY).fetchone() or (None,)
        while found := connection.execute(OLDER_READERS_QUERY, (newest,)).fetchone():
            if monotonic() > deadline:
                raise StorageError(
                    f"{self.datastore.address.name} is being read (by process {found[0]}), so what"
                    " was erased is still in its tables: end that program, and open it again"
                )
            sleep(RECONNECT_PAUSE)

    def _find_own_ids(self, events: Sequence[RowValues]) -> list[int]:
        """Return the ids of these events if exactly these are stored; else an empty list."""
        ids = []
        for originator, version, *content in events:
            for id, *stored in self.datastore.read(SELECT_OWN, (originator, version)):
                if stored == content:
                    ids.append(id)
        return ids if len(ids) == len(events) else []

    def read_log(self, after: int, last: int, limit: int, topics: Sequence[str]) -> list[StoredRow]:
        """Return the log as far as it is settled."""
        settled = self.tail.known
        asked = after >= settled
        if asked:
            settled = self.tail.find_settled()
        found = super().read_log(after, min(settled, last), limit, topics)
        if len(found) < limit and last > settled and not asked:
            # More may be committed by now.
            found = super().read_log(after, min(self.tail.find_settled(), last), limit, topics)
        return found

    def max_notification_id(self) -> int:
        return self.tail.find_settled()

    def read_change_marker(self) -> object:
        """Return the snapshot, which stays the same as long as no transaction commits.

        `NOTIFY` would serialize all appends, since it locks the whole database to commit. Reading a
        snapshot only costs a round trip.
        """
        snapshot = self.datastore.read(SNAPSHOT_QUERY)
        # A transaction leaves the snapshot a moment before it releases its locks.
        return None if self.tail.is_waiting else snapshot

    def read_server_time(self) -> datetime:
        return cast(datetime, self.datastore.read("SELECT clock_timestamp()")[0][0])

    def backup(self, target: Path) -> None:
        with self.datastore.get_connection() as connection:
            copy_to_file(connection, target)

    def reopen_in_child(self) -> None:
        super().reopen_in_child()
        self.tail = LogTail(self.datastore)


def _error_state(error: OperationalError) -> str | None:
    return getattr(error.args[0], "sqlstate", None) if error.args else None


def make_insertion(rows: TableRows) -> tuple[bytes, list[Any]]:
    """Return a statement that stores everything or nothing, and its parameters.

    Its text depends only on the number of rows of each kind, so it is prepared once.
    """
    counts = [(table, min(len(part), MAX_VALUES_ROWS + 1)) for table, part in rows.items()]
    parameters = [value for part in rows.values() for value in _make_parameters(part)]
    return _make_statement(tuple(counts)), parameters


def _make_parameters(rows: Sequence[RowValues]) -> list[Any]:
    if len(rows) <= MAX_VALUES_ROWS:
        return [value for row in rows for value in row]
    return [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=1_000)
def _make_statement(counts: tuple[tuple[str, int], ...]) -> bytes:
    *before, last = [_make_insert(table, count) for table, count in counts]
    last += " RETURNING notification_id" if counts[-1][0] == EVENTS else " RETURNING 0"
    named = ", ".join(f"part{number} AS ({insert})" for number, insert in enumerate(before))
    return f"{'WITH ' if named else ''}{named} {last}".encode()


def _make_insert(name: str, count: int) -> str:
    columns, on_conflict = TABLES[name].columns, TABLES[name].on_conflict
    names = ", ".join(columns)
    into = f"INSERT INTO {name} ({names})"
    kinds = [POSTGRES_TYPES[kind].split()[0] for kind in columns.values()]
    places = ["%b" if kind == "bytea" else "%s" for kind in kinds]
    if count <= MAX_VALUES_ROWS:
        row = f"({', '.join(places)})"
        return f"{into} VALUES {', '.join([row] * count)}{on_conflict}"
    arrays = ", ".join(f"{place}::{kind}[]" for place, kind in zip(places, kinds, strict=True))
    # Ids are assigned in the order of the rows, and `RETURNING` returns them in that order.
    return (
        f"{into} SELECT {names} FROM unnest({arrays})"  # noqa: S608 - our own names
        f" WITH ORDINALITY AS row ({names}, number) ORDER BY number{on_conflict}"
    )


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

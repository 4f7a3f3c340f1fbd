"""Writes the log to PostgreSQL."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast
from uuid import UUID

from eventsourcing.persistence import IntegrityError, OperationalError

from ....domain.ranges import Run
from ..event_log.recorder import ROW_COLUMNS, Recorder
from ..event_log.stored_row import Batch, LogNotification
from .log_tail import LogTail
from .postgres_address import PostgresAddress
from .postgres_datastore import ConnectionLostError, PostgresLogDatastore
from .postgres_storage import PostgresStorage, copy_to_file

MAX_ATTEMPTS = 10
"""How often an append is retried after the server rolled it back for others."""
RETRYABLE_STATES = frozenset({"40001", "40P01"})
"""A serialization failure or deadlock, for which the server rolled the transaction back."""

SELECT_OWN = (
    "SELECT notification_id, topic, subject, key_id, tokens, digest, carried, state"
    " FROM stored_events WHERE originator_id = ? AND originator_version = ?"
)
SNAPSHOT_QUERY = "SELECT pg_current_snapshot()::text"

RowValues = tuple[Any, ...]
MAX_VALUES_ROWS = 4
"""The most rows that are sent as single values; an array costs as much as ten values."""


class InsertTable(NamedTuple):
    name: str
    columns: str
    """The names and types of its columns."""
    ending: str = ""


EVENTS_TABLE = InsertTable(
    "stored_events",
    "originator_id uuid, originator_version bigint, topic int, subject int, key_id text,"
    " tokens bigint, digest bytea, carried text, state bytea",
    " RETURNING notification_id",
)
BODIES_TABLE = InsertTable(
    "bodies", "subject int, hash bytea, content bytea", " ON CONFLICT DO NOTHING"
)
KEYS_TABLE = InsertTable("append_keys", "originator_id uuid, key text, first bigint, last bigint")
STREAMS_TABLE = InsertTable(
    "streams", "originator_id uuid, namespace text, session text, lineage text"
)
IMPORTS_TABLE = InsertTable(
    "imports",
    "namespace text, source text, format text, session text, bytes bigint, complete boolean,"
    " stamp text",
    " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
    " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete,"
    " stamp = excluded.stamp",
)


def open_postgres(address: str, synchronous: str) -> "PostgresRecorder":
    return PostgresRecorder(PostgresLogDatastore(PostgresAddress.parse(address), synchronous))


class PostgresRecorder(Recorder):
    """The log in a schema of a PostgreSQL server.

    Appends take no lock on the table: ids come from a sequence, and `tail` says up to which id none
    is still missing.
    """

    SELECT_RUNS = (
        f"SELECT {ROW_COLUMNS}"  # noqa: S608 - our names
        " FROM unnest(?::bigint[], ?::bigint[]) AS run (first, last) CROSS JOIN stored_events"
        " WHERE originator_id = ? AND originator_version BETWEEN run.first AND run.last"
        " ORDER BY originator_version"
    )
    datastore: PostgresLogDatastore

    def __init__(self, datastore: PostgresLogDatastore) -> None:
        super().__init__(datastore)
        self.tail = LogTail(datastore)

    def insert_batch(self, batch: Batch) -> Sequence[int]:
        """Store everything in one transaction, or nothing.

        After a lost connection it checks whether the append was stored, and repeats it if not.
        """
        return self._insert(*self._make_insertion(batch))

    def insert_batches(self, batches: Iterable[Batch]) -> None:
        with self.datastore.get_connection() as connection, connection.transaction():
            cursor = connection.cursor(binary=True)
            for it in batches:
                if it.rows or it.keys or it.streams or it.imports:
                    query, parameters, _ = self._make_insertion(it)
                    cursor.execute(query, parameters)

    def _make_insertion(self, it: Batch) -> tuple[bytes, Sequence[Any], list[RowValues]]:
        """Return the statement that stores everything, its parameters, and the events' values."""
        events, bodies = [], {}
        for row in it.rows:
            events.append(self.make_values(row))
            for body in row.bodies:
                bodies[self.names.subject(row.subject)[0], body.hash] = body.content
        return *make_insertion(it, events, bodies), events

    def _insert(
        self, query: bytes, parameters: Sequence[Any], events: list[RowValues]
    ) -> list[int]:
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

    def _find_own_ids(self, events: list[RowValues]) -> list[int]:
        """Return the ids of these events if exactly these are stored; else an empty list."""
        ids = []
        for originator, version, *content in events:
            for id, *stored in self.datastore.read(SELECT_OWN, (originator, version)):
                if stored == content:
                    ids.append(id)
        return ids if len(ids) == len(events) else []

    def encode_id(self, id: UUID) -> UUID:
        return id

    def decode_id(self, stored: UUID) -> UUID:
        return stored

    def encode_runs(self, runs: Sequence[Run]) -> tuple[list[int], list[int]]:
        return [first for first, _ in runs], [last for _, last in runs]

    def read_log(
        self, after: int, last: int, limit: int, topics: Sequence[str]
    ) -> list[LogNotification]:
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

    def get_storage(self) -> PostgresStorage:
        return PostgresStorage(self.datastore, self.names)

    def find_problems(self) -> list[str]:
        """Return nothing: PostgreSQL checks pages as it reads them, and fails the statement."""
        return []

    def backup(self, target: Path) -> None:
        with self.datastore.get_connection() as connection:
            copy_to_file(connection, target)

    def reopen_in_child(self) -> None:
        super().reopen_in_child()
        self.tail = LogTail(self.datastore)


def _error_state(error: OperationalError) -> str | None:
    return getattr(error.args[0], "sqlstate", None) if error.args else None


def make_insertion(
    it: Batch, events: Sequence[RowValues], bodies: dict[tuple[int, bytes], bytes]
) -> tuple[bytes, Sequence[Any]]:
    """Return a statement that stores everything or nothing, and its parameters.

    Its text depends only on the number of rows of each kind, so it is prepared once.
    """
    if len(events) == 1 and not (bodies or it.keys or it.streams or it.imports):
        return _make_statement(((EVENTS_TABLE, 1),)), events[0]
    parts: list[tuple[InsertTable, Sequence[RowValues]]] = [
        (STREAMS_TABLE, [(s.originator_id, s.namespace, s.session, s.lineage) for s in it.streams]),
        (KEYS_TABLE, [(k.originator_id, k.key, k.first, k.last) for k in it.keys]),
        # Sorted, so that two appends with the same bodies do not deadlock.
        (BODIES_TABLE, [(*name, content) for name, content in sorted(bodies.items())]),
        (IMPORTS_TABLE, it.imports),
        (EVENTS_TABLE, events),
    ]
    there = [(table, rows) for table, rows in parts if rows]
    text = _make_statement(
        tuple((table, min(len(rows), MAX_VALUES_ROWS + 1)) for table, rows in there)
    )
    return text, [value for _, rows in there for value in _make_parameters(rows)]


def _make_parameters(rows: Sequence[RowValues]) -> list[Any]:
    if len(rows) <= MAX_VALUES_ROWS:
        return [value for row in rows for value in row]
    return [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=1_000)
def _make_statement(parts: tuple[tuple[InsertTable, int], ...]) -> bytes:
    *before, (table, count) = parts
    last = _make_insert(table, count) + table.ending
    if table is not EVENTS_TABLE:
        last += " RETURNING 0"
    named = ", ".join(
        f"part{number} AS ({_make_insert(table, count)}{table.ending})"
        for number, (table, count) in enumerate(before)
    )
    return f"{'WITH ' if named else ''}{named} {last}".encode()


def _make_insert(table: InsertTable, count: int) -> str:
    columns = [column.split() for column in table.columns.split(", ")]
    names = ", ".join(name for name, _ in columns)
    into = f"INSERT INTO {table.name} ({names})"
    places = ["%b" if kind == "bytea" else "%s" for _, kind in columns]
    if count <= MAX_VALUES_ROWS:
        row = f"({', '.join(places)})"
        return f"{into} VALUES {', '.join([row] * count)}"
    arrays = ", ".join(
        f"{place}::{kind}[]" for place, (_, kind) in zip(places, columns, strict=True)
    )
    # Ids are assigned in the order of the rows, and `RETURNING` returns them in that order.
    return (
        f"{into} SELECT {names} FROM unnest({arrays})"  # noqa: S608 - our own names
        f" WITH ORDINALITY AS row ({names}, number) ORDER BY number"
    )

"""Builds the single statement that stores an append in one round trip and one transaction."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..event_log.stored_row import AppendKey, ImportRow, Stream

MAX_VALUES_ROWS = 4
"""The most rows that are sent as single values; an array costs as much as ten values."""

RowValues = tuple[Any, ...]


class InsertTable(NamedTuple):
    """A table with its columns and their types."""

    name: str
    columns: tuple[tuple[str, str], ...]
    ending: str = ""


EVENTS_TABLE = InsertTable(
    "stored_events",
    (
        ("originator_id", "uuid"),
        ("originator_version", "bigint"),
        ("topic", "int"),
        ("subject", "int"),
        ("key_id", "text"),
        ("tokens", "bigint"),
        ("digest", "bytea"),
        ("carried", "text"),
        ("state", "bytea"),
    ),
    " RETURNING notification_id",
)
BODIES_TABLE = InsertTable(
    "bodies",
    (("subject", "int"), ("hash", "bytea"), ("content", "bytea")),
    " ON CONFLICT DO NOTHING",
)
KEYS_TABLE = InsertTable(
    "append_keys",
    (("originator_id", "uuid"), ("key", "text"), ("first", "bigint"), ("last", "bigint")),
)
STREAMS_TABLE = InsertTable(
    "streams",
    (("originator_id", "uuid"), ("namespace", "text"), ("session", "text"), ("lineage", "text")),
)
IMPORTS_TABLE = InsertTable(
    "imports",
    (
        ("namespace", "text"),
        ("source", "text"),
        ("format", "text"),
        ("session", "text"),
        ("bytes", "bigint"),
        ("complete", "boolean"),
        ("stamp", "text"),
    ),
    " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
    " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete,"
    " stamp = excluded.stamp",
)


def make_insertion(
    events: Sequence[RowValues],
    bodies: dict[tuple[int, bytes], bytes],
    keys: Sequence[AppendKey],
    streams: Sequence[Stream],
    imports: Sequence[ImportRow],
) -> tuple[bytes, Sequence[Any]]:
    """Return a statement that stores everything or nothing, and its parameters.

    Its text depends only on the number of rows of each kind, so it is prepared once.
    """
    if len(events) == 1 and not (bodies or keys or streams or imports):
        return _make_statement(((EVENTS_TABLE, 1),)), events[0]
    parts: list[tuple[InsertTable, Sequence[RowValues]]] = [
        (STREAMS_TABLE, [(s.originator_id, s.namespace, s.session, s.lineage) for s in streams]),
        (KEYS_TABLE, [(k.originator_id, k.key, k.first, k.last) for k in keys]),
        # Sorted, so that two appends with the same bodies do not deadlock.
        (BODIES_TABLE, [(*name, content) for name, content in sorted(bodies.items())]),
        (IMPORTS_TABLE, imports),
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
    names = ", ".join(name for name, _ in table.columns)
    into = f"INSERT INTO {table.name} ({names})"
    places = ["%b" if kind == "bytea" else "%s" for _, kind in table.columns]
    if count <= MAX_VALUES_ROWS:
        row = f"({', '.join(places)})"
        return f"{into} VALUES {', '.join([row] * count)}"
    arrays = ", ".join(
        f"{place}::{kind}[]" for place, (_, kind) in zip(places, table.columns, strict=True)
    )
    # Ids are assigned in the order of the rows, and `RETURNING` returns them in that order.
    return (
        f"{into} SELECT {names} FROM unnest({arrays})"  # noqa: S608 - our own names
        f" WITH ORDINALITY AS row ({names}, number) ORDER BY number"
    )

"""The one statement that stores an append: one round trip, one transaction."""

from collections.abc import Sequence
from typing import Any

from ..recorder import AppendKey, Stream
from ..stored_row import StoredRow

COLUMNS = (
    "originator_id, originator_version, topic, subject, key_id, tokens, digest, carried, state"
)
INSERT_EVENT = (
    f"INSERT INTO stored_events ({COLUMNS})"  # noqa: S608 - names of columns
    " VALUES (%s, %s, %s, %s, %s, %s, %b, %s, %b) RETURNING notification_id"
)
# Ids are drawn in the order of the rows, and `RETURNING` gives them back in that order.
INSERT_EVENTS = (
    f"INSERT INTO stored_events ({COLUMNS}) SELECT {COLUMNS}"  # noqa: S608
    " FROM unnest(%s::uuid[], %s::bigint[], %s::int[], %s::int[], %s::text[], %s::bigint[],"
    " %b::bytea[], %s::text[], %b::bytea[])"
    f" WITH ORDINALITY AS row ({COLUMNS}, number) ORDER BY number RETURNING notification_id"
)
INSERT_BODIES = (
    "INSERT INTO bodies (subject, hash, content)"
    " SELECT * FROM unnest(%s::int[], %b::bytea[], %b::bytea[]) ON CONFLICT DO NOTHING"
)
INSERT_KEYS = (
    "INSERT INTO append_keys (originator_id, key, first, last)"
    " SELECT * FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[])"
)
INSERT_STREAMS = (
    "INSERT INTO streams (originator_id, namespace, session, lineage)"
    " SELECT * FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[])"
)
INSERT_IMPORTS = (
    "INSERT INTO imports (namespace, source, format, session, bytes, complete) SELECT * FROM"
    " unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::boolean[])"
    " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
    " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete"
)

Values = tuple[Any, ...]


def insertion(
    events: Sequence[Values],
    bodies: dict[tuple[int, bytes], bytes],
    keys: Sequence[AppendKey],
    streams: Sequence[Stream],
    imports: Sequence[Values],
) -> tuple[str, Sequence[Any]]:
    """A statement that stores all of it or nothing, and its parameters.

    Its text depends only on which kinds of rows there are, so that it is prepared once.
    """
    if len(events) == 1 and not (bodies or keys or streams or imports):
        return INSERT_EVENT, events[0]
    parts: list[tuple[str, list[Values]]] = [
        (INSERT_STREAMS, [(s.originator_id, s.namespace, s.session, s.lineage) for s in streams]),
        (INSERT_KEYS, [(k.originator_id, k.key, k.first, k.last) for k in keys]),
        # Sorted, so that two appends that store the same bodies do not wait for each other.
        (INSERT_BODIES, [(*name, content) for name, content in sorted(bodies.items())]),
        (INSERT_IMPORTS, [(*record[:5], bool(record[5])) for record in imports]),
    ]
    there = [(sql, rows) for sql, rows in parts if rows]
    parameters = [column for _, rows in there for column in _columns(rows)]
    if not events:
        ((sql, _),) = there
        return f"{sql} RETURNING 0", parameters
    parameters += _columns(events)
    before = ", ".join(f"part{number} AS ({sql})" for number, (sql, _) in enumerate(there))
    return (f"WITH {before} " if before else "") + INSERT_EVENTS, parameters


def event_values(row: StoredRow, topic: int, subject: int) -> Values:
    """A row of `stored_events`, in the order of COLUMNS."""
    id, version, _, state, _, key_id, tokens, digest, carried, _ = row
    return (id, version, topic, subject, key_id, tokens, digest, carried.decode(), state)


def _columns(rows: Sequence[Values]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]

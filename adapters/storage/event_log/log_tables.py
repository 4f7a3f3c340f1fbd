"""Defines the tables that appends write to, and makes their rows, for both databases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from .log_names import LogNames
from .stored_row import Batch


@dataclass(frozen=True, eq=False)
class LogTable:
    """A table that appends write to, on both databases."""

    name: str
    columns: str
    """Their names and PostgreSQL types, without a number that the database assigns."""
    on_conflict: str = ""

    @cached_property
    def column_names(self) -> list[str]:
        return [column.split()[0] for column in self.columns.split(", ")]


STREAMS_TABLE = LogTable(
    "streams", "originator_id uuid, namespace text, session text, lineage text"
)
KEYS_TABLE = LogTable("append_keys", "originator_id uuid, key text, first bigint, last bigint")
BODIES_TABLE = LogTable(
    "bodies", "subject int, hash bytea, content bytea", " ON CONFLICT DO NOTHING"
)
IMPORTS_TABLE = LogTable(
    "imports",
    "namespace text, source text, format text, session text, bytes bigint, complete boolean,"
    " stamp text",
    " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
    " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete,"
    " stamp = excluded.stamp",
)
EVENTS_TABLE = LogTable(
    "stored_events",
    "originator_id uuid, originator_version bigint, topic int, subject int, key_id text,"
    " tokens bigint, digest bytea, carried text, state bytea",
)
LOG_TABLES = (STREAMS_TABLE, KEYS_TABLE, BODIES_TABLE, IMPORTS_TABLE, EVENTS_TABLE)
TableRows = dict[LogTable, Sequence[tuple[Any, ...]]]
"""The rows to store in each table that has some, in the order of storing."""


def make_table_rows(batch: Batch, names: LogNames, encode_id: Callable[[UUID], Any]) -> TableRows:
    rows: TableRows = {}
    if batch.streams:
        rows[STREAMS_TABLE] = [(encode_id(id), *rest) for id, *rest in batch.streams]
    if batch.keys:
        rows[KEYS_TABLE] = [(encode_id(id), *rest) for id, *rest in batch.keys]
    events = []
    bodies: dict[tuple[int, bytes], bytes] = {}
    for id, version, topic, state, subject, key_id, tokens, digest, carried, large in batch.rows:
        owner = names.subject(subject)[0]
        place = encode_id(id), version, names.topic(topic), owner
        events.append((*place, key_id, tokens, digest, carried.decode(), state))
        for body in large:
            bodies[owner, body.hash] = body.content
    if bodies:
        # Sorted, so that two appends with the same bodies do not deadlock.
        rows[BODIES_TABLE] = [(*address, content) for address, content in sorted(bodies.items())]
    if batch.imports:
        rows[IMPORTS_TABLE] = batch.imports
    if events:
        rows[EVENTS_TABLE] = events
    return rows

"""Defines the tables of a log once, for the types of each database."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

EVENT_COLUMNS = """(
    notification_id {serial},
    originator_id {uuid} NOT NULL,
    originator_version {integer} NOT NULL,
    topic {integer} NOT NULL{of_topics},
    subject {integer} NOT NULL{of_subjects},
    key_id {text},
    tokens {integer} NOT NULL,
    digest {bytes} NOT NULL,
    carried {text} NOT NULL,
    state {bytes} NOT NULL
){strict}"""
"""`carried` is text, as PostgreSQL's `jsonb` refuses the escapes of NUL and of lone surrogates."""

SEGMENTS_SCHEMA = """
CREATE TABLE source_segments (
    digest {bytes} NOT NULL UNIQUE,
    content {bytes} NOT NULL
){strict};
"""
LOG_SCHEMA = (
    """
CREATE TABLE topics (
    id {serial},
    topic {text} NOT NULL UNIQUE
){strict};
CREATE TABLE subjects (
    id {serial},
    name {text} NOT NULL UNIQUE,
    secret {bytes} NOT NULL
){strict};
CREATE TABLE stored_events """
    + EVENT_COLUMNS
    + """;
CREATE UNIQUE INDEX stored_events_position ON stored_events (originator_id, originator_version);
CREATE TABLE bodies (
    id {serial},
    subject {integer} NOT NULL{of_subjects},
    hash {bytes} NOT NULL,
    key_id {text},
    content {bytes} NOT NULL,
    UNIQUE (subject, hash)
){strict};
CREATE TABLE streams (
    originator_id {uuid} PRIMARY KEY,
    namespace {text} NOT NULL,
    session {text} NOT NULL,
    lineage {text},
    UNIQUE (namespace, session, lineage)
){without_rowid};
CREATE TABLE append_keys (
    originator_id {uuid} NOT NULL,
    key {text} NOT NULL,
    first {integer} NOT NULL,
    last {integer} NOT NULL,
    PRIMARY KEY (originator_id, key)
){without_rowid};
CREATE TABLE imports (
    namespace {text} NOT NULL,
    source {text} NOT NULL,
    format {text} NOT NULL,
    session {text},
    bytes {integer} NOT NULL,
    complete {boolean} NOT NULL,
    stamp {text},
    segments {bytes} NOT NULL DEFAULT {no_bytes},
    PRIMARY KEY (namespace, source)
){without_rowid};
CREATE INDEX imports_by_session ON imports (namespace, session);
"""
    + SEGMENTS_SCHEMA
)


@dataclass(frozen=True, slots=True)
class LogTable:
    """A table that appends write to."""

    columns: dict[str, str]
    """Their types in LOG_SCHEMA by name, without a number that the database assigns."""
    on_conflict: str = ""


def _read_table(name: str, on_conflict: str = "") -> LogTable:
    (definition,) = re.findall(rf"CREATE TABLE {name} \(\n(.*?)\n\)", LOG_SCHEMA, re.DOTALL)
    columns = dict(re.findall(r"^ +(\w+) {(\w+)}", definition, re.MULTILINE))
    return LogTable({name: kind for name, kind in columns.items() if kind != "serial"}, on_conflict)


STREAMS = "streams"
KEYS = "append_keys"
BODIES = "bodies"
SEGMENTS = "source_segments"
IMPORTS = "imports"
EVENTS = "stored_events"
TABLES = {
    STREAMS: _read_table(STREAMS),
    KEYS: _read_table(KEYS),
    BODIES: _read_table(BODIES, " ON CONFLICT DO NOTHING"),
    SEGMENTS: _read_table(SEGMENTS, " ON CONFLICT DO NOTHING"),
    IMPORTS: _read_table(
        IMPORTS,
        " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
        " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete,"
        " stamp = excluded.stamp, segments = excluded.segments",
    ),
    EVENTS: _read_table(EVENTS),
}
"""The tables that appends write to."""
TableRows = dict[str, Sequence[tuple[Any, ...]]]
"""The rows to store in each table that has some, in the order of storing."""

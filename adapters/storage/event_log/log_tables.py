"""Defines the tables of a log once, for the types of each database, and the rows that they hold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

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
RECORDS_SCHEMA = """
CREATE TABLE records (
    originator_id {uuid} NOT NULL,
    name {text} NOT NULL,
    position {integer} NOT NULL,
    PRIMARY KEY (originator_id, name, position)
){without_rowid};
"""
DELETED_SCHEMA = """
CREATE TABLE deleted_streams (
    originator_id {uuid} PRIMARY KEY,
    namespace {text} NOT NULL,
    session {text} NOT NULL,
    lineage {text},
    generation {integer} NOT NULL,
    segments {bytes} NOT NULL DEFAULT {no_bytes},
    erased {boolean}
){without_rowid};
CREATE INDEX deleted_streams_by_session ON deleted_streams (namespace, session);
CREATE INDEX deleted_streams_unfinished ON deleted_streams (originator_id) WHERE NOT erased;
"""
"""`erased` is null while the content is there, false while it is removed, and true afterwards."""
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
    generation {integer} NOT NULL DEFAULT 0,
    parent {uuid},
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
    + RECORDS_SCHEMA
    + DELETED_SCHEMA
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
DELETED = "deleted_streams"
KEYS = "append_keys"
BODIES = "bodies"
SEGMENTS = "source_segments"
IMPORTS = "imports"
RECORDS = "records"
EVENTS = "stored_events"
TABLES = {
    STREAMS: _read_table(STREAMS),
    DELETED: _read_table(DELETED),
    KEYS: _read_table(KEYS),
    BODIES: _read_table(BODIES, " ON CONFLICT DO NOTHING"),
    SEGMENTS: _read_table(SEGMENTS, " ON CONFLICT DO NOTHING"),
    IMPORTS: _read_table(
        IMPORTS,
        " ON CONFLICT (namespace, source) DO UPDATE SET format = excluded.format,"
        " session = excluded.session, bytes = excluded.bytes, complete = excluded.complete,"
        " stamp = excluded.stamp, segments = excluded.segments",
    ),
    RECORDS: _read_table(RECORDS),
    EVENTS: _read_table(EVENTS),
}
"""The tables that appends write to."""
TableRows = dict[str, Sequence[tuple[Any, ...]]]
"""The rows to store in each table that has some, in the order of storing."""


_ERASED = b'{"erased":'


class StoredContent(NamedTuple):
    hash: bytes
    """Keyed hash of the plaintext."""
    content: bytes


class StoredRow(NamedTuple):
    """One row of the log, with what eventsourcing expects of a StoredEvent and a Notification.

    A named tuple, since every append makes one and a frozen dataclass of ten fields takes 2 us.
    """

    originator_id: UUID
    originator_version: int
    topic: str
    state: bytes
    subject: str
    key_id: str | None
    tokens: int
    """Estimated tokens of the event's block; 0 for other events."""
    digest: bytes
    """Keyed hash of the state as plaintext."""
    carried: bytes
    """The aggregate's state after the event, as JSON."""
    bodies: tuple[StoredContent, ...] = ()
    """Content that the state refers to and that may not be stored yet."""
    id: int = 0
    """Its place in the log, where that was read."""

    @property
    def is_erased(self) -> bool:
        """Whether an erasure removed the content."""
        return self.state.startswith(_ERASED)


class AppendKey(NamedTuple):
    """The key that a caller gave one append; a repeated key returns the first result."""

    originator_id: UUID
    key: str
    first: int
    last: int


class Stream(NamedTuple):
    """An entry in the catalog of streams; `lineage` is None for a session's own stream."""

    originator_id: UUID
    namespace: str
    session: str
    lineage: str | None
    generation: int = 0
    """How many sessions of this name were deleted before."""
    parent: UUID | None = None
    """What must not be deleted when the stream begins: its session, or the one it is forked from.
    """


class DeletedStream(NamedTuple):
    """An entry in the catalog of streams whose session was deleted."""

    originator_id: UUID
    namespace: str
    session: str
    lineage: str | None
    generation: int
    segments: "SegmentDigests" = b""
    """For a session, the segments of the sources that it was imported from."""
    erased: bool | None = None
    """None while the content is there, False while it is being removed."""


SegmentDigests = bytes
"""The digests of segments, one after the other."""


class ImportRow(NamedTuple):
    namespace: str
    source: str
    format: str
    session: str | None
    """The first of its sessions."""
    bytes: int
    complete: bool
    stamp: str | None = None
    """The file's stamp, to detect changes; None forces the file to be read again."""
    segments: SegmentDigests = b""
    """The segments that hold the file's bytes; empty if they are not kept."""


class Segment(NamedTuple):
    """A part of a source file as it was read, compressed; equal parts are stored once."""

    digest: bytes
    content: bytes


class RecordRow(NamedTuple):
    """Where a value was put under a name, or removed: the register of records."""

    originator_id: UUID
    name: str
    position: int


@dataclass(slots=True)
class Batch:
    """What is stored together, or a part of it."""

    rows: list[StoredRow] = field(default_factory=list)
    keys: list[AppendKey] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    imports: list[ImportRow] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    records: list[RecordRow] = field(default_factory=list)
    deleted: list[DeletedStream] = field(default_factory=list)

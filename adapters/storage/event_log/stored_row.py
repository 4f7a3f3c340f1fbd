"""Defines the rows of the log as the database holds them."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


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


@dataclass(slots=True)
class Batch:
    """What is stored together, or a part of it."""

    rows: list[StoredRow] = field(default_factory=list)
    keys: list[AppendKey] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    imports: list[ImportRow] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

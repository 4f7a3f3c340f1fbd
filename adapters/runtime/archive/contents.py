"""What an archive says it holds, item by item, in the order and the numbers that it must have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple
from uuid import UUID

from ....domain.compaction import lineage_id
from ....domain.errors import ImportFileError
from ....domain.session import session_id
from ...storage.event_log.keyed_hash import ADDRESS_SIZE
from ...storage.event_log.recorder import AppendKey
from ...storage.event_log.stored_row import Body, StoredRow
from .packing import Record, Unpacker
from .writer import NAME, VERSION

SECRET_SIZES = range(16, 65)
"""Bytes that a subject's secret may have; cutbank's own have 32."""


class SessionBegins(NamedTuple):
    """What follows is of this session."""

    namespace: str
    key: str
    whole: bool


class StreamBegins(NamedTuple):
    """What follows is of this stream: its events from `first` to `last`, and its keys."""

    id: UUID
    lineage: str | None
    first: int
    last: int


class Subject(NamedTuple):
    """A subject of the events that follow, and the secret that their hashes are keyed with."""

    name: str
    secret: bytes


class Imported(NamedTuple):
    """A source that was imported into the session."""

    source: str
    format: str
    bytes: int
    complete: bool


class FamilyEnds(NamedTuple):
    """All sessions since the last of these belong together; the digest is that of all so far."""

    digest: str


Item = SessionBegins | StreamBegins | Subject | StoredRow | AppendKey | Imported | FamilyEnds


@dataclass
class Contents:
    """Reads one archive, once. Raises ImportFileError at whatever is not as it must be."""

    file: BinaryIO

    def __post_init__(self) -> None:
        self._unpacker = Unpacker(self.file)
        self._records = self._unpacker.records()
        self._waiting: Record | None = None
        self._sessions = self._events = 0
        self._subjects: set[str] = set()

    @property
    def offset(self) -> int:
        """Bytes of the file read so far."""
        return self._unpacker.offset

    def items(self) -> Iterator[Item]:
        header = self._header()
        while record := self._take("family"):
            for _ in range(record.number_of("sessions", 1)):
                yield from self._session()
            end = self._must("family ends")
            yield FamilyEnds(f"{end.number} {self._unpacker.digest()}")
        if record := self._peek():
            raise record.wrong("is not what must come here")
        if (self._sessions, self._events) != (
            header.number_of("sessions"),
            header.number_of("events"),
        ):
            raise header.wrong("does not count what the archive holds")

    def _header(self) -> Record:
        record = self._peek()
        if record is None or record.kind != NAME:
            raise ImportFileError("it is no archive of cutbank")
        self._waiting = None
        version = record.number_of("version", 1)
        if version > VERSION:
            raise ImportFileError(
                f"it was written by a newer cutbank (archive version {version}, this one reads up "
                f"to {VERSION}): upgrade cutbank to read it"
            )
        self._most = record.number_of("events")
        return record

    def _session(self) -> Iterator[Item]:
        record = self._must("session")
        self._sessions += 1
        begins = SessionBegins(
            record.text("namespace"), record.text("key"), record.fields.get("whole") is True
        )
        yield begins
        for index in range(record.number_of("streams", 1)):
            yield from self._stream(begins, is_own=not index)
        while source := self._take("import"):
            complete = source.fields.get("complete")
            if not isinstance(complete, bool):
                raise source.wrong("'complete' is neither true nor false")
            yield Imported(
                source.text("source"), source.text("format"), source.number_of("bytes"), complete
            )

    def _stream(self, session: SessionBegins, *, is_own: bool) -> Iterator[Item]:
        record = self._must("stream")
        lineage = record.text_or_none("lineage")
        namespace, key, _ = session
        id = session_id(namespace, key) if lineage is None else lineage_id(namespace, key, lineage)
        if is_own != (lineage is None) or record.uuid("id") != id:
            raise record.wrong(f"is no stream of the session {key!r}")
        first = record.number_of("first", 1)
        stream = StreamBegins(id, lineage, first, record.number_of("last", first))
        yield stream
        for version in range(first, stream.last + 1):
            yield from self._event(id, version)
        before = ""
        while named := self._take("key"):
            key, last = named.text("key"), named.number_of("last", 1)
            if last > stream.last or key.encode() <= before.encode():
                raise named.wrong("names no append that the stream can have")
            before = key
            yield AppendKey(id, key, named.number_of("first", 1), last)

    def _event(self, id: UUID, version: int) -> Iterator[Item]:
        while told := self._take("subject"):
            secret = told.hexed("secret")
            if len(secret) not in SECRET_SIZES:
                raise told.wrong("'secret' has not the size of one")
            self._subjects.add(told.text("name"))
            yield Subject(told.text("name"), secret)
        bodies = []
        while apart := self._take("body"):
            address = apart.hexed("hash")
            if len(address) != ADDRESS_SIZE:
                raise apart.wrong("'hash' has not the size of one")
            bodies.append((apart.text("subject"), Body(address, apart.blob(0))))
        record = self._must("event")
        self._events += 1
        if record.number_of("at", 1) != version or self._events > self._most:
            raise record.wrong("is not the event that must come here")
        subject = record.text("subject")
        if subject not in self._subjects or any(of != subject for of, _ in bodies):
            raise record.wrong("its subject, or that of its content, was not told")
        yield StoredRow(
            id,
            version,
            record.text("topic"),
            record.blob(0),
            subject,
            record.text_or_none("key_id"),
            record.number_of("tokens"),
            record.hexed("digest"),
            record.blob(1),
            tuple(body for _, body in bodies),
        )

    def _peek(self) -> Record | None:
        if self._waiting is None:
            self._waiting = next(self._records, None)
        return self._waiting

    def _take(self, kind: str) -> Record | None:
        """The next record, if it is of that kind."""
        record = self._peek()
        if record is None or record.kind != kind:
            return None
        self._waiting = None
        return record

    def _must(self, kind: str) -> Record:
        if (record := self._take(kind)) is None:
            found = self._peek()
            raise ImportFileError(
                f"record {found.number if found else 'at the end'}: {kind!r} must come here"
            )
        return record

"""Reads the items of an archive, checks their order, and moves them into another namespace."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple
from uuid import UUID

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_events import CompactionOpened
from ....domain.errors import ImportFileError
from ....domain.session import derive_session_id
from ....domain.session_events import ParentNamed, SessionOpened
from ...storage.event_log.event_mapper import ZstdCompressor, decompress_any, dump_json, load_json
from ...storage.event_log.stored_row import (
    ADDRESS_SIZE,
    AppendKey,
    ImportRow,
    StoredContent,
    StoredRow,
    compute_keyed_hash,
)
from .packing import (
    ARCHIVE_FORMAT,
    ARCHIVE_VERSION,
    ArchiveRecord,
    ArchiveUnpacker,
    SessionHeader,
    StreamHeader,
)

_NAMING_TOPICS = {one.TOPIC for one in (SessionOpened, ParentNamed, CompactionOpened)}
"""The events that name a namespace; all others stay the same, byte for byte."""
SECRET_SIZES = range(16, 65)
"""The allowed sizes of a subject's secret, in bytes; cutbank's own secrets have 32."""


class SubjectSecret(NamedTuple):
    """The secret that keys the hashes of a subject's events."""

    name: str
    secret: bytes


class FamilyEnd(NamedTuple):
    """The end of a family of related sessions, with the digest of everything before it."""

    digest: str


ArchiveItem = (
    SessionHeader | StreamHeader | SubjectSecret | StoredRow | AppendKey | ImportRow | FamilyEnd
)


@dataclass
class ArchiveReader:
    """Reads one archive once. Raises ImportFileError if an item is not as it must be."""

    file: BinaryIO

    def __post_init__(self) -> None:
        self._unpacker = ArchiveUnpacker(self.file)
        self._records = self._unpacker.read_records()
        self._waiting: ArchiveRecord | None = None
        self._sessions = self._events = 0
        self._subjects: set[str] = set()

    @property
    def offset(self) -> int:
        return self._unpacker.offset

    def read_items(self) -> Iterator[ArchiveItem]:
        header = self._read_header()
        while record := self._take("family"):
            for _ in range(record.get_number("sessions", 1)):
                yield from self._read_session()
            end = self._require("family ends")
            yield FamilyEnd(f"{end.number} {self._unpacker.compute_digest()}")
        if record := self._peek():
            raise record.make_error("is not what must come here")
        if (self._sessions, self._events) != (
            header.get_number("sessions"),
            header.get_number("events"),
        ):
            raise header.make_error("does not count what the archive holds")

    def _read_header(self) -> ArchiveRecord:
        record = self._peek()
        if record is None or record.kind != ARCHIVE_FORMAT:
            raise ImportFileError("it is not an archive of cutbank")
        self._waiting = None
        version = record.get_number("version", 1)
        if version > ARCHIVE_VERSION:
            raise ImportFileError(
                f"it was written by a newer cutbank (archive version {version}, this one reads up "
                f"to {ARCHIVE_VERSION}): upgrade cutbank to read it"
            )
        self._most = record.get_number("events")
        return record

    def _read_session(self) -> Iterator[ArchiveItem]:
        record = self._require("session")
        self._sessions += 1
        begins = SessionHeader(
            record.get_text("namespace"), record.get_text("key"), record.fields.get("whole") is True
        )
        yield begins
        for index in range(record.get_number("streams", 1)):
            yield from self._read_stream(begins, is_own=not index)
        while source := self._take("import"):
            complete = source.fields.get("complete")
            if not isinstance(complete, bool):
                raise source.make_error("'complete' is neither true nor false")
            yield ImportRow(
                begins.namespace,
                source.get_text("source"),
                source.get_text("format"),
                begins.key,
                source.get_number("bytes"),
                complete,
            )

    def _read_stream(self, session: SessionHeader, *, is_own: bool) -> Iterator[ArchiveItem]:
        record = self._require("stream")
        lineage = record.get_optional_text("lineage")
        namespace, key, _ = session
        id = _derive_stream_id(namespace, key, lineage)
        if is_own != (lineage is None) or record.get_uuid("id") != id:
            raise record.make_error(f"is not a stream of the session {key!r}")
        first = record.get_number("first", 1)
        stream = StreamHeader(session, id, lineage, first, record.get_number("last", first))
        yield stream
        for version in range(first, stream.last + 1):
            yield from self._read_event(id, version)
        before = ""
        while named := self._take("key"):
            key, last = named.get_text("key"), named.get_number("last", 1)
            if last > stream.last or key.encode() <= before.encode():
                raise named.make_error("names no append that the stream can have")
            before = key
            yield AppendKey(id, key, named.get_number("first", 1), last)

    def _read_event(self, id: UUID, version: int) -> Iterator[ArchiveItem]:
        while told := self._take("subject"):
            secret = told.get_bytes("secret")
            if len(secret) not in SECRET_SIZES:
                raise told.make_error("'secret' has not the size of one")
            self._subjects.add(told.get_text("name"))
            yield SubjectSecret(told.get_text("name"), secret)
        bodies = []
        while apart := self._take("body"):
            address = apart.get_bytes("hash")
            if len(address) != ADDRESS_SIZE:
                raise apart.make_error("'hash' has not the size of one")
            bodies.append((apart.get_text("subject"), StoredContent(address, apart.get_blob(0))))
        record = self._require("event")
        self._events += 1
        if record.get_number("at", 1) != version or self._events > self._most:
            raise record.make_error("is not the event that must come here")
        subject = record.get_text("subject")
        if subject not in self._subjects or any(of != subject for of, _ in bodies):
            raise record.make_error("its subject, or that of its content, is missing")
        yield StoredRow(
            id,
            version,
            record.get_text("topic"),
            record.get_blob(0),
            subject,
            record.get_optional_text("key_id"),
            record.get_number("tokens"),
            record.get_bytes("digest"),
            record.get_blob(1),
            tuple(body for _, body in bodies),
        )

    def _peek(self) -> ArchiveRecord | None:
        if self._waiting is None:
            self._waiting = next(self._records, None)
        return self._waiting

    def _take(self, kind: str) -> ArchiveRecord | None:
        record = self._peek()
        if record is None or record.kind != kind:
            return None
        self._waiting = None
        return record

    def _require(self, kind: str) -> ArchiveRecord:
        if (record := self._take(kind)) is None:
            found = self._peek()
            raise ImportFileError(
                f"record {found.number if found else 'at the end'}: {kind!r} must come here"
            )
        return record


def _derive_stream_id(namespace: str, key: str, lineage: str | None) -> UUID:
    if lineage is None:
        return derive_session_id(namespace, key)
    return derive_lineage_id(namespace, key, lineage)


class NamespaceRenaming:
    """Rewrites the items of one archive as if its sessions had always been in `namespace`.

    Default subjects, which are named after the namespace, are renamed too.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.was = ""
        self.ids: dict[UUID, UUID] = {}
        self.secrets: dict[str, bytes] = {}

    def rename(self, item: ArchiveItem) -> ArchiveItem:
        match item:
            case SessionHeader():
                self.was = item.namespace
                return item._replace(namespace=self.namespace)
            case StreamHeader(session=session, id=id, lineage=lineage):
                session = session._replace(namespace=self.namespace)
                self.ids[id] = _derive_stream_id(self.namespace, session.key, lineage)
                return item._replace(session=session, id=self.ids[id])
            case SubjectSecret():
                self.secrets[item.name] = item.secret
                return item._replace(name=self._rename_subject(item.name))
            case StoredRow():
                return self._rename_row(item)
            case AppendKey():
                return item._replace(originator_id=self.ids[item.originator_id])
            case ImportRow():
                return item._replace(namespace=self.namespace)
            case _:
                return item

    def _rename_subject(self, name: str) -> str:
        own = name.startswith(f"{self.was}/")
        return f"{self.namespace}{name[len(self.was) :]}" if own else name

    def _rename_row(self, row: StoredRow) -> StoredRow:
        moved = row._replace(
            originator_id=self.ids[row.originator_id], subject=self._rename_subject(row.subject)
        )
        if row.topic not in _NAMING_TOPICS:
            return moved
        tree = load_json(decompress_any(row.state))
        for named in (tree, tree.get("fork"), tree.get("parent")):
            if named and "namespace" in named:
                named["namespace"] = self.namespace
        if base := tree.get("base"):
            base["originator_id"] = str(self.ids[UUID(base["originator_id"])])
        plaintext = dump_json(tree)
        digest = compute_keyed_hash(plaintext, self.secrets[row.subject], len(row.digest))
        is_packed = row.state[:4] == ZstdCompressor.MAGIC
        state = ZstdCompressor().compress(plaintext) if is_packed else plaintext
        return moved._replace(state=state, digest=digest)

"""Copies sessions from one log into another, event by event as they are stored."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ...domain.compaction import derive_lineage_id
from ...domain.compaction_events import CompactionOpened
from ...domain.errors import ExportError, ImportFileError
from ...domain.session import derive_session_id
from ...domain.session_events import RECORD_TOPICS, ParentNamed, SessionOpened
from ..storage.event_log.event_mapper import (
    compute_keyed_hash,
    decompress_any,
    dump_json,
    load_json,
)
from ..storage.event_log.event_store import EventStore
from ..storage.event_log.log_tables import (
    AppendKey,
    Batch,
    DeletedStream,
    ImportRow,
    RecordRow,
    Segment,
    StoredContent,
    StoredRow,
    Stream,
)
from ..storage.event_log.source_segments import list_digests
from ..storage.event_log.stream_check import check_stream, make_guard, read_rows
from .archive_extents import SessionExtent, SessionGeneration, StreamExtent

_BATCH_ROWS = 500
_BATCH_BYTES = 4_000_000
_NAMING_TOPICS = {one.TOPIC for one in (SessionOpened, ParentNamed, CompactionOpened)}
"""The events that name a namespace; all others stay the same, byte for byte."""


class LogCopy:
    """Copies from `source` to `target`, with `namespace` as if the sessions had always been there.

    Default subjects, which are named after the namespace, are then renamed too.
    """

    def __init__(
        self, source: EventStore, target: EventStore, namespace: str | None = None
    ) -> None:
        self.source = source
        self.target = target
        self.namespace = namespace
        self._lasts: dict[UUID, int] = {}
        """The last version of each stream that was checked."""

    def check_session(self, session: SessionExtent) -> Iterator[StoredRow]:
        """Yield the session's rows, each after it was checked.

        Raises ImportFileError for what cutbank would not have written.
        """
        name, _, _, fork, streams = session
        where = f"session {name[1]!r}"
        if fork:
            parent = derive_session_id(fork.namespace, fork.key, fork.generation)
            if self._lasts.get(parent, 0) < fork.position:
                raise ImportFileError(f"{where}: #{fork.position} of its parent is missing")
        for stream, first, last in streams:
            id, lineage = stream.originator_id, stream.lineage
            opened = self.source.read_lineage_opening(id) if lineage is not None else None
            base = opened.base if opened else None
            before = base.version if base else fork.position if fork and lineage is None else 0
            said = self.source.read_opening(*name) if opened is None else opened
            if (
                id != _derive_id(*name, lineage)
                or (said.namespace, said.key, said.generation) != name
                or (opened and opened.lineage != lineage)
                or (base and self._lasts.get(base.originator_id, 0) < base.version)
                or first != before + 1
            ):
                raise ImportFileError(f"{where}: {_describe(stream)} does not begin as it must")
            self._lasts[id] = first - 1
            guard = make_guard(self.source, stream)
            for row, _, problems in check_stream(self.source, id, first, last, guard):
                if problems:
                    at = f"#{row.originator_version} of {_describe(stream)}"
                    raise ImportFileError(f"{where}: {at}: {problems[0]}")
                self._lasts[id] = row.originator_version
                yield row

    def compare_session(self, session: SessionExtent) -> None:
        """Raise ImportFileError if the target has another session of that name."""
        longer_here = longer_there = False
        name = (self.namespace or session.name[0], session.name[1])
        ids = {self._rename_stream(extent.stream).originator_id for extent in session.streams}
        gone = {one.originator_id for one in self.target.recorder.select_deleted(*name)}
        if gone & ids and session.is_whole:
            raise _make_refusal(session, "was deleted there", is_there=False)
        for extent in session.streams:
            stream = self._rename_stream(extent.stream)
            id = stream.originator_id
            head = self._read_head(id)
            longer_here |= extent.last > head
            longer_there |= extent.last < head
            common = extent._replace(last=min(head, extent.last))
            there = read_rows(self.target, id, 1, common.last) if head else iter(())
            here = (self._rename_row(row, extent.stream) for row in self._read_rows(common))
            for one, other in zip_longest(here, there):
                if not (one and other and _get_comparable(one) == _get_comparable(other)):
                    at = (one or other).originator_version
                    raise _make_refusal(session, f"differs from #{at} of {_describe(stream)} on")
            for key in self._read_keys(extent) if head else ():
                if self.target.select_key(id, key.key) not in (None, key):
                    raise _make_refusal(session, f"its append {key.key[:60]!r} is another one")
            for _, subject, secret in self._list_names(extent):
                if self.target.recorder.names.secret_of(subject) not in (None, secret):
                    raise ImportFileError(
                        f"the subject {subject!r} is known here by another secret, so its events "
                        "cannot be equal: restore the file into another database"
                    )
        there_too = {one.originator_id for one in self.target.recorder.select_streams(*name)}
        if longer_here and (longer_there or not there_too <= ids):
            raise _make_refusal(session, "it went on both there and in the file")

    def copy(self, family: Sequence[SessionExtent]) -> Counter[str]:
        """Store what the target lacks in one transaction; return how many events of each topic.

        Raises IntegrityError if another process has just stored other events.
        """
        names = self.target.recorder.names
        for topic, subject, secret in {
            one for of in family for extent in of.streams for one in self._list_names(extent)
        }:
            names.topic(topic)
            if names.adopt(subject, secret) != secret:
                raise IntegrityError(f"the subject {subject!r} was just added")
        ids = [self._rename_stream(one.stream)[0] for of in family for one in of.streams]
        stored = Counter[str]()
        with self.target.lock_streams(*ids):
            # Nothing of the target is read while it is written to.
            missing = [self._find_missing(session) for session in family]
            try:
                self.target.recorder.insert_all(self._make_batches(missing, stored))
            finally:
                for id in ids:
                    self.target.evict(id)
        return stored

    def _list_names(self, extent: StreamExtent) -> list[tuple[str, str, bytes]]:
        """Return the topics and subjects of the rows, and the subjects' secrets."""
        stream, _, last = extent
        return [
            (topic, self._rename_subject(subject, stream), self._get_secret(subject))
            for topic, subject in self.source.recorder.select_names(stream.originator_id, last)
        ]

    def _find_missing(self, session: SessionExtent) -> tuple[Batch, list[StreamExtent]]:
        """Return what the target lacks of a session, and where the events are that it lacks."""
        batch, missing = Batch(), []
        for extent in session.streams:
            stream = self._rename_stream(extent.stream)
            head = self._read_head(stream.originator_id)
            if not head and session.is_deleted:
                batch.deleted.append(DeletedStream(*stream[:5]))
            elif not head:
                batch.streams.append(self._check_parent(stream, session))
            if extent.last > head:
                missing.append(extent._replace(first=max(extent.first, head + 1)))
            batch.keys += (
                key
                for key in self._read_keys(extent)
                if not (head and self.target.select_key(key.originator_id, key.key))
            )
        if missing and session.is_whole:
            batch.imports += self._read_imports(session.name)
        return batch, missing

    def _check_parent(self, stream: Stream, session: SessionExtent) -> Stream:
        """Return the stream without its parent if a fork's was deleted, here or there."""
        fork = session.fork
        if not fork or stream.lineage is not None or stream.parent is None:
            return stream
        names = ((self.source, fork.namespace), (self.target, stream.namespace))
        is_deleted = any(
            log.recorder.select_generation(name, fork.key) > fork.generation for log, name in names
        )
        return stream._replace(parent=None) if is_deleted else stream

    def _make_batches(
        self, found: Sequence[tuple[Batch, list[StreamExtent]]], stored: Counter[str]
    ) -> Iterator[Batch]:
        for batch, missing in found:
            for imported in batch.imports:
                yield from self._read_segments(imported)
            yield batch
            rows, size = Batch(), 0
            for extent in missing:
                for row in self._read_rows(extent):
                    bodies = tuple(self._read_bodies(row))
                    moved = self._rename_row(row, extent.stream)._replace(bodies=bodies)
                    rows.rows.append(moved)
                    if row.topic in RECORD_TOPICS:
                        name = load_json(decompress_any(row.state))["name"]
                        at = row.originator_version
                        rows.records.append(RecordRow(moved.originator_id, name, at))
                    stored[row.topic] += 1
                    size += len(row.state) + sum(len(body.content) for body in bodies)
                    if len(rows.rows) >= _BATCH_ROWS or size > _BATCH_BYTES:
                        yield rows
                        rows, size = Batch(), 0
            yield rows

    def _read_rows(self, extent: StreamExtent) -> Iterator[StoredRow]:
        """Yield the source's rows. Raises ExportError if one is missing."""
        stream, position, last = extent
        for row in read_rows(self.source, stream.originator_id, position, last):
            if row.originator_version != position:
                break
            position += 1
            yield row
        if position <= last:
            raise ExportError(f"#{position} is missing from the database: see `cutbank verify`")

    def _read_bodies(self, row: StoredRow) -> Iterator[StoredContent]:
        for address in self.source.mapper.list_references(row):
            yield StoredContent(address, self.source.recorder.select_body(row.subject, address))

    def _read_imports(self, name: SessionGeneration) -> Iterator[ImportRow]:
        for row in self.source.recorder.select_imports(*name[:2]):
            moved = row._replace(namespace=self.namespace or row.namespace, stamp=None)
            # On this machine, a source of that name may be a different one.
            known = self.target.recorder.select_import(moved.namespace, row.source)
            if known is None or known.session in (None, row.session):
                yield moved

    def _read_segments(self, row: ImportRow) -> Iterator[Batch]:
        """Yield the segments of a kept source, one at a time."""
        for digest in list_digests(row.segments):
            content = self.source.recorder.select_segment(digest)
            yield Batch(segments=[Segment(digest, content)])

    def _read_keys(self, extent: StreamExtent) -> Iterator[AppendKey]:
        id, last = extent.stream.originator_id, ""
        moved = self._rename_stream(extent.stream).originator_id
        while keys := self.source.recorder.select_keys(id, last, _BATCH_ROWS):
            for key in keys:
                # Appends made since the extent was read are not in it.
                if key.last <= extent.last:
                    yield key._replace(originator_id=moved)
            last = keys[-1].key

    def _read_head(self, id: UUID) -> int:
        """Return the stream's newest version in the target, 0 if it is not there."""
        found = self.target.recorder.select_head(id)
        return found[0] if found else 0

    def _get_secret(self, subject: str) -> bytes:
        secret = self.source.recorder.names.secret_of(subject)
        assert secret is not None, "an event of the subject is there"
        return secret

    def _rename_stream(self, stream: Stream) -> Stream:
        if self.namespace is None:
            return stream
        name = (self.namespace, stream.session, stream.generation)
        parent = stream.parent and _derive_id(*name, None)
        if parent and stream.lineage is None:
            own = (stream.namespace, stream.session, stream.generation)
            fork = self.source.read_opening(*own).fork
            parent = _derive_id(self.namespace, fork.key, fork.generation, None) if fork else None
        id = _derive_id(*name, stream.lineage)
        return stream._replace(originator_id=id, namespace=self.namespace, parent=parent)

    def _rename_subject(self, subject: str, stream: Stream) -> str:
        own = f"{stream.namespace}/"
        if self.namespace is None or not subject.startswith(own):
            return subject
        return f"{self.namespace}/{subject.removeprefix(own)}"

    def _rename_row(self, row: StoredRow, stream: Stream) -> StoredRow:
        if self.namespace is None:
            return row
        moved = row._replace(
            originator_id=self._rename_stream(stream).originator_id,
            subject=self._rename_subject(row.subject, stream),
        )
        if row.topic not in _NAMING_TOPICS:
            return moved
        tree = load_json(decompress_any(row.state))
        for named in (tree, tree.get("fork"), tree.get("parent")):
            if named and "namespace" in named:
                named["namespace"] = self.namespace
        if base := tree.get("base"):
            opened = self.source.read_lineage_opening(UUID(base["originator_id"]))
            name = (self.namespace, opened.key, opened.generation)
            base["originator_id"] = str(_derive_id(*name, opened.lineage))
        plaintext = dump_json(tree)
        digest = compute_keyed_hash(plaintext, self._get_secret(row.subject), len(row.digest))
        return moved._replace(state=plaintext, digest=digest)


def _derive_id(namespace: str, key: str, generation: int, lineage: str | None) -> UUID:
    if lineage is None:
        return derive_session_id(namespace, key, generation)
    return derive_lineage_id(namespace, key, lineage, generation)


def _describe(stream: Stream) -> str:
    return f"its lineage {stream.lineage!r}" if stream.lineage else "its log"


def _get_comparable(row: StoredRow) -> tuple[object, ...]:
    return row.originator_version, row.topic, row.subject, row.key_id, row.digest, row.carried


def _make_refusal(session: SessionExtent, why: str, *, is_there: bool = True) -> ImportFileError:
    return ImportFileError(
        f"session {session.name[1]!r} {'is there already, and ' if is_there else ''}{why}: "
        "restore it into another namespace, with --namespace"
    )

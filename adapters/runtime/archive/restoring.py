"""Restores an archive: checks and compares all of it first, then stores it family by family."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from ....domain.compaction_events import CompactBoundary
from ....domain.errors import ImportFileError
from ....domain.session_events import BlockAppended, ToolCalled, ToolReturned
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import AppendKey, Batch, ImportRow, StoredRow, Stream
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .archive_proof import ArchiveProof
from .archive_reader import (
    ArchiveItem,
    ArchiveReader,
    FamilyEnd,
    NamespaceRenaming,
    SubjectSecret,
)
from .packing import ARCHIVE_FORMAT, SessionHeader, StreamHeader

_BATCH_ROWS = 500
_BATCH_BYTES = 4_000_000
_REMEDY = "restore it into another namespace, with --namespace"
_BLOCK_TOPICS = {one.TOPIC for one in (BlockAppended, ToolCalled, ToolReturned)}


def restore_archive(
    store: SessionStore,
    path: Path,
    report: FileReport,
    *,
    namespace: str | None = None,
    heard: Callable[[int], None] | None = None,
) -> None:
    """Restore the sessions of an archive; the stored events equal those that were archived.

    Events that are already stored are skipped. With `namespace` the sessions go there. An archive
    that cannot be restored whole is reported as one error before anything is stored.
    """
    report.format = ARCHIVE_FORMAT
    plan = _RestorePlan(store.events, report, namespace, heard)
    try:
        with path.open("rb") as file:
            plan.read_archive(file)
            file.seek(0)
            plan.store(file)
        report.complete = True
    except OSError as error:
        report.errors.append(f"{path}: cannot be read: {error.strerror or error}")
    except IntegrityError:
        report.errors.append(f"{path}: somebody wrote to its sessions meanwhile: import it again")
    except ImportFileError as error:
        report.errors.append(f"{path}: {error}")
        if not plan.is_partly_stored:
            # The counts so far do not belong to any stored session.
            report.sessions.clear()


@dataclass
class _RestorePlan:
    """What to store of an archive: a first reading plans it, a second one stores it."""

    events: EventStore
    report: FileReport
    namespace: str | None
    heard: Callable[[int], None] | None
    secrets: dict[str, bytes] = field(default_factory=dict)
    topics: dict[str, None] = field(default_factory=dict)
    heads: dict[UUID, int] = field(default_factory=dict)
    """The stored head of each stream; 0 if the stream is not there."""
    families: list[tuple[str, list[UUID]]] = field(default_factory=list)
    """The digest up to the end of each family, and the family's streams."""
    is_partly_stored: bool = False
    """Whether part of the archive may have been stored."""

    def read_archive(self, file: BinaryIO) -> None:
        difference, contents = _Comparison(self.events), ArchiveReader(file)
        names: set[tuple[str, str]] = set()
        ids: list[UUID] = []
        for item in self._rename_items(ArchiveProof().check_items(contents.read_items())):
            match item:
                case SessionHeader(namespace=namespace, key=key):
                    difference.begin_session(item)
                    if (namespace, key) in names:
                        raise ImportFileError(f"it holds two sessions {key!r} for one namespace")
                    names.add((namespace, key))
                    self.report.sessions.append(key)
                case StreamHeader(id=id):
                    ids.append(id)
                    self.heads[id] = difference.begin_stream(item)
                case SubjectSecret(name=name, secret=secret):
                    there = self.events.recorder.names.secret_of(name)
                    if self.secrets.setdefault(name, secret) != secret or there not in (
                        None,
                        secret,
                    ):
                        raise _make_secret_error(name)
                case StoredRow(topic=topic):
                    self._count(topic)
                    difference.check_event(item)
                case AppendKey():
                    difference.check_key(item)
                case FamilyEnd(digest=digest):
                    difference.end_session()
                    self.families.append((digest, ids))
                    ids = []
                case _:
                    pass
            self._report_progress(contents.offset // 2)

    def store(self, file: BinaryIO) -> None:
        self.is_partly_stored = True
        for name, secret in self.secrets.items():
            if self.events.recorder.names.adopt(name, secret) != secret:
                raise _make_secret_error(name)
        for topic in self.topics:
            self.events.recorder.names.topic(topic)
        half = os.fstat(file.fileno()).st_size // 2
        contents = ArchiveReader(file)
        items = self._rename_items(contents.read_items())
        for digest, ids in self.families:
            with self.events.lock_streams(*ids):
                try:
                    self.events.recorder.insert_all(self._make_batches(items, digest))
                finally:
                    for id in ids:
                        self.events.evict(id)
            self._report_progress(half + contents.offset // 2)

    def _rename_items(self, items: Iterator[ArchiveItem]) -> Iterator[ArchiveItem]:
        if self.namespace is None:
            return items
        return map(NamespaceRenaming(self.namespace).rename, items)

    def _make_batches(self, items: Iterator[ArchiveItem], expected: str) -> Iterator[Batch]:
        """Yield one family in batches, without the rows that are already stored."""
        batch, size = Batch(), 0
        added = False
        for item in items:
            match item:
                case SessionHeader():
                    added = False
                case StreamHeader(session=session, id=id, lineage=lineage, last=last):
                    added = added or last > self.heads[id]
                    if not self.heads[id]:
                        named = Stream(id, session.namespace, session.key, lineage)
                        batch.streams.append(named)
                case StoredRow(originator_id=id, originator_version=version):
                    if version > self.heads[id]:
                        batch.rows.append(item)
                        size += len(item.state) + sum(len(body.content) for body in item.bodies)
                        self.report.added += item.topic in _BLOCK_TOPICS
                case AppendKey(originator_id=id, key=name):
                    if not (self.heads[id] and self.events.recorder.select_key(id, name)):
                        batch.keys.append(item)
                case ImportRow(namespace=namespace, source=source) if added:
                    # On this machine, a source of that name may be a different one.
                    found = self.events.recorder.select_import_session(namespace, source)
                    if found in (None, item.session):
                        batch.imports.append(item)
                case FamilyEnd(digest=digest):
                    if digest != expected:
                        raise ImportFileError("it was changed while it was read")
                    break
                case _:
                    pass
            if len(batch.rows) + len(batch.keys) >= _BATCH_ROWS or size > _BATCH_BYTES:
                yield batch
                batch, size = Batch(), 0
        yield batch

    def _count(self, topic: str) -> None:
        self.topics[topic] = None
        report = self.report
        report.entries += 1
        report.imported += 1
        report.ended["imported"] = report.entries
        report.tool_calls += topic == ToolCalled.TOPIC
        report.tool_results += topic == ToolReturned.TOPIC
        report.compactions += topic == CompactBoundary.TOPIC

    def _report_progress(self, offset: int) -> None:
        if self.heard:
            self.heard(offset)


def _make_secret_error(name: str) -> ImportFileError:
    return ImportFileError(
        f"the subject {name!r} is known here by another secret, so its events cannot be equal: "
        "restore the archive into another database"
    )


class _Comparison:
    """Compares the streams of one archive with those of a store, which must not have diverged."""

    stream: StreamHeader

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.session: SessionHeader | None = None
        self.head = 0
        self.there: Iterator[StoredRow] = iter(())
        self.streams: set[UUID] = set()
        self.further_here: bool = False
        self.further_in_it: bool = False

    def begin_session(self, session: SessionHeader) -> None:
        self.end_session()
        self.session = session
        self.streams = set()
        self.further_here = self.further_in_it = False

    def begin_stream(self, stream: StreamHeader) -> int:
        """Return the stream's newest version in the store, 0 if it is not there."""
        found = self.store.recorder.select_head(stream.id)
        self.stream, self.head = stream, found[0] if found else 0
        self.streams.add(stream.id)
        self.further_here |= self.head > stream.last
        self.further_in_it |= self.head < stream.last
        self.there = self._read_rows(stream.id, min(self.head, stream.last))
        return self.head

    def check_event(self, row: StoredRow) -> None:
        if row.originator_version > self.head:
            return
        there = next(self.there, None)
        if there is None or _comparable_fields(there) != _comparable_fields(row):
            at = f"#{row.originator_version}{self.stream.of_lineage}"
            raise self._make_refusal(f"and is another one from {at} on")

    def check_key(self, key: AppendKey) -> None:
        """Raise ImportFileError if the store has a different append under that key."""
        if self.head and self.store.recorder.select_key(key.originator_id, key.key) not in (
            None,
            key,
        ):
            raise self._make_refusal(f"and its append {key.key[:60]!r} is another one")

    def end_session(self) -> None:
        """Raise ImportFileError if archive and store both went on after their common events."""
        if self.session is None or not self.further_in_it:
            return
        namespace, key, whole = self.session
        there = self.store.recorder.select_streams(namespace, key)
        if whole:
            self.further_here |= any(one.originator_id not in self.streams for one in there)
        if self.further_here:
            raise self._make_refusal("and went on both there and in the archive")

    def _read_rows(self, id: UUID, last: int) -> Iterator[StoredRow]:
        position = 0
        while page := self.store.recorder.select_events(
            id, gt=position, lte=last, limit=_BATCH_ROWS
        ):
            yield from page
            position = page[-1].originator_version

    def _make_refusal(self, why: str) -> ImportFileError:
        assert self.session is not None, "a session was begun"
        return ImportFileError(f"session {self.session.key!r} is there already {why}: {_REMEDY}")


def _comparable_fields(row: StoredRow) -> tuple[object, ...]:
    return row.originator_version, row.topic, row.subject, row.key_id, row.digest, row.carried

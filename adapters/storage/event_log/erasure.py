"""Removes the content of sessions whose erasure is recorded: events, bodies, names and sources.

What a crash interrupts is found by the catalog of deleted streams, and done again: each step may be
repeated.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from eventsourcing.persistence import MapperDeserialisationError, OperationalError

from ....domain.compaction_events import LineageDeleted
from ....domain.errors import StorageError
from ....domain.session_events import SessionDeleted, SessionErased, SessionOpened
from .deletion import SELECT_OF_SUBJECT
from .event_mapper import OPENING_TOPICS, dump_json, load_json
from .event_store import EventStore
from .log_tables import DELETED, KEYS, RECORDS, STREAMS, DeletedStream, ImportRow, StoredRow
from .recorder import LogTransaction
from .source_segments import list_digests, read_segments
from .stream_check import read_rows

TOMBSTONES = frozenset(one.TOPIC for one in (SessionDeleted, SessionErased, LineageDeleted))
"""The events that an erasure leaves as they are."""
_BLANK_ROWS = 500
_SEGMENT_NAME = re.compile(rb'"segment":"([0-9a-f]{32})"')
"""The segment that a block came from; in a text, the quotes would be escaped."""

_TEXT = re.compile(rb'"text":"((?:[^"\\]|\\.){8,200})')
"""The beginning of a block's text, as JSON writes it."""
_MAX_TEXTS = 5
_LINKS = ("timestamp", "namespace", "key", "generation", "lineage", "fork", "base", "class_version")


@dataclass(slots=True)
class ErasedContent:
    """What an erasure removed, or would."""

    events: int = 0
    bytes: int = 0
    """Of the contents, uncompressed."""
    bodies: int = 0
    segments: int = 0
    """Of sources; like bodies, they are only counted when they are removed."""


def erase_contents(store: EventStore) -> tuple[ErasedContent, list[UUID]]:
    """Remove the content of all streams whose erasure is recorded and not done, in one transaction.

    Also returns which streams these are. What free pages hold stays until `Recorder.purge`.
    """
    return _Erasing(store).run()


def mark_erased(store: EventStore, ids: Sequence[UUID]) -> None:
    """Record that nothing is left of the contents that `erase_contents` removed."""
    rows = [(True, store.recorder.encode_id(id)) for id in ids]
    with store.recorder.transaction() as transaction:
        query = "UPDATE deleted_streams SET erased = ? WHERE originator_id = ?"
        transaction.execute_many(query, rows)


def measure_contents(store: EventStore, ids: Iterable[UUID]) -> ErasedContent:
    """Return how many events of these streams have content, and its bytes; removes nothing."""
    found = ErasedContent()
    for id in ids:
        for row in _iter_contents(store, id):
            found.events += 1
            found.bytes += _measure_content(store, row)
    return found


def _iter_contents(store: EventStore, id: UUID) -> Iterator[StoredRow]:
    """Yield the rows of a stream whose content an erasure removes."""
    for row in read_rows(store, id, 1, None):
        if not row.is_erased and row.topic not in TOMBSTONES:
            yield row


def _measure_content(store: EventStore, row: StoredRow) -> int:
    """Return the bytes of an event's JSON and bodies, as far as they can be read."""
    try:
        size = len(store.mapper.read_plaintext(row))
    except Exception:  # noqa: BLE001 - damaged bytes may fail in any way
        return len(row.state)
    with suppress(MapperDeserialisationError):  # a body that is missing has no size
        size += sum(len(content) for _, content in store.mapper.read_bodies(row))
    return size


@dataclass(slots=True)
class _Origin:
    """What is known of the file that a session without an import of its own came from."""

    namespace: str
    format: str | None = None
    texts: list[bytes] = field(default_factory=list)
    """How some of its blocks begin, as JSON writes it."""
    is_named: bool = False
    """Whether its blocks name their segments, which those of a document do not."""

    def is_in(self, row: ImportRow, content: bytes) -> bool:
        """Return whether an import's source holds one of the texts."""
        if (row.namespace, row.format) != (self.namespace, self.format):
            return False
        spellings = list(self.texts)
        for text in self.texts:
            with suppress(ValueError):  # it was cut within a character
                spellings.append(json.dumps(load_json(b'"%b"' % text))[1:-1].encode())
        return any(text in content for text in spellings)


class _Erasing:
    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.recorder = store.recorder
        self.done = ErasedContent()
        self._bodies: dict[str, set[bytes]] = {}
        """The hashes of the bodies that the erased events refer to, by subject."""
        self._named: set[bytes] = set()
        """The segments of files that several sessions came from."""
        self._origins: list[_Origin] = []

    def run(self) -> tuple[ErasedContent, list[UUID]]:
        with self.recorder.transaction() as transaction:
            transaction.lock_contents()
            deleted = self.recorder.select_deleted()
            streams = [one for one in deleted if one.erased is False]
            imported = {_name_session(one) for one in streams if one.segments}
            for one in streams:
                origin = None if _name_session(one) in imported else _Origin(one.namespace)
                self._blank_stream(transaction, one.originator_id, origin)
                if origin and origin.format and not origin.is_named:
                    self._origins.append(origin)
                for table in (KEYS, RECORDS):  # the names in these were chosen by users
                    transaction.execute(
                        f"DELETE FROM {table} WHERE originator_id = ?",  # noqa: S608 - our names
                        self.recorder.encode_id(one.originator_id),
                    )
            for subject, hashes in self._bodies.items():
                self._remove_bodies(transaction, subject, hashes)
            self._remove_segments(transaction, deleted)
        ids = [one.originator_id for one in streams]
        self.store.forget_streams(*ids)
        return self.done, ids

    def _blank_stream(self, transaction: LogTransaction, id: UUID, origin: _Origin | None) -> None:
        """Replace the content of a stream's events by its size, and note where it came from."""
        encoded = self.recorder.encode_id(id)
        blank: list[tuple[Any, ...]] = []
        for row in _iter_contents(self.store, id):
            self._note_content(row, origin)
            size = _measure_content(self.store, row)
            self.done.events += 1
            self.done.bytes += size
            skeleton = dump_json({"erased": size, **_read_links(self.store, row)})
            blank.append((skeleton, encoded, row.originator_version))
            if len(blank) == _BLANK_ROWS:
                _blank_rows(transaction, blank)
        _blank_rows(transaction, blank)

    def _note_content(self, row: StoredRow, origin: _Origin | None) -> None:
        """Note the bodies and segments of an event."""
        mapper = self.store.mapper
        try:
            plaintext = mapper.read_plaintext(row)
            bodies = mapper.list_references(row)
        except Exception:  # noqa: BLE001 - damaged bytes may fail in any way, and go all the same
            return
        self._bodies.setdefault(row.subject, set()).update(bodies)
        if origin and (named := _SEGMENT_NAME.search(plaintext)):
            self._named.add(bytes.fromhex(named[1].decode()))
            origin.is_named = True
        elif origin and row.topic == SessionOpened.TOPIC:
            origin.format = load_json(plaintext).get("source")
        elif origin and len(origin.texts) < _MAX_TEXTS and (text := _TEXT.search(plaintext)):
            origin.texts.append(text[1])

    def _remove_bodies(self, transaction: LogTransaction, subject: str, hashes: set[bytes]) -> None:
        """Remove those bodies of a subject to which no other event refers."""
        number = self.recorder.names.subject(subject)[0]
        for id in self._find_others(number):
            if not hashes:
                return
            for row in read_rows(self.store, id, 1, None):
                hashes.difference_update(self.store.mapper.list_references(row))
        rows = [(number, digest) for digest in hashes]
        transaction.execute_many("DELETE FROM bodies WHERE subject = ? AND hash = ?", rows)
        self.done.bodies += len(rows)

    def _find_others(self, subject: int) -> Iterator[UUID]:
        """Yield the streams about a subject whose content stays."""
        for table, condition in ((STREAMS, ""), (DELETED, " AND erased IS NULL")):
            query = SELECT_OF_SUBJECT.format(columns="originator_id", table=table) + condition
            for (id,) in self.recorder.datastore.read(query, (subject,)):
                yield self.recorder.decode_id(id)

    def _remove_segments(
        self, transaction: LogTransaction, deleted: Sequence[DeletedStream]
    ) -> None:
        """Remove the segments of the sources, but for those that another import has as well.

        A file that several sessions came from is dropped as a whole.
        """
        own, kept, named = set[bytes](), set[bytes](), self._named
        for one in deleted:
            digests = set(list_digests(one.segments))
            if one.erased is False or digests & named:
                own |= digests
                transaction.execute(
                    "UPDATE deleted_streams SET segments = ? WHERE originator_id = ?",
                    b"",
                    self.recorder.encode_id(one.originator_id),
                )
            else:
                kept |= digests
        for row in self.recorder.select_imports():
            digests = set(list_digests(row.segments))
            if digests & named or self._is_origin(row):
                own |= digests
                transaction.execute(
                    "UPDATE imports SET segments = ? WHERE namespace = ? AND source = ?",
                    b"",
                    row.namespace,
                    row.source,
                )
            else:
                kept |= digests
        gone = [(digest,) for digest in (own | named) - kept]
        transaction.execute_many("DELETE FROM source_segments WHERE digest = ?", gone)
        self.done.segments += len(gone)

    def _is_origin(self, row: ImportRow) -> bool:
        """Return whether one of the sessions came from this file, although no block names it."""
        wanted = [one for one in self._origins if one.format == row.format]
        if not wanted or not row.segments:
            return False
        try:
            pieces = read_segments(list_digests(row.segments), self.recorder.select_segment)
            content = b"".join(pieces)
        except (OperationalError, StorageError):
            # It is damaged: its other segments may hold it all the same.
            return any(one.namespace == row.namespace for one in wanted)
        return any(one.is_in(row, content) for one in wanted)


def _read_links(store: EventStore, row: StoredRow) -> dict[str, Any]:
    """Return what an opening says of the streams before it, on which other chains depend."""
    if row.topic not in OPENING_TOPICS:
        return {}
    try:
        state = load_json(store.mapper.read_plaintext(row))
    except Exception:  # noqa: BLE001 - damaged bytes may fail in any way, and go all the same
        return {}
    return {name: state[name] for name in _LINKS if name in state}


def _name_session(stream: DeletedStream) -> tuple[str, str, int]:
    return stream.namespace, stream.session, stream.generation


def _blank_rows(transaction: LogTransaction, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        transaction.execute_many(
            "UPDATE stored_events SET state = ?, carried = '{}'"
            " WHERE originator_id = ? AND originator_version = ?",
            rows,
        )
        rows.clear()

"""Compares an archive with the store and refuses it if the two have diverged."""

from collections.abc import Iterator
from uuid import UUID

from ....domain.errors import ImportFileError
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.stored_row import AppendKey, StoredRow
from .archive_reader import SessionHeader, StreamHeader

_AT_ONCE = 500
_REMEDY = "restore it into another namespace, with --namespace"


class ArchiveComparison:
    """Compares the streams of one archive with those of a store."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.session: SessionHeader | None = None
        self.stream: StreamHeader | None = None
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
            assert self.stream is not None, "a stream was begun"
            of = f" of its lineage {self.stream.lineage!r}" if self.stream.lineage else ""
            raise self._make_refusal(f"and is another one from #{row.originator_version}{of} on")

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
        while page := self.store.recorder.select_events(id, gt=position, lte=last, limit=_AT_ONCE):
            yield from page
            position = page[-1].originator_version

    def _make_refusal(self, why: str) -> ImportFileError:
        assert self.session is not None, "a session was begun"
        return ImportFileError(f"session {self.session.key!r} is there already {why}: {_REMEDY}")


def _comparable_fields(row: StoredRow) -> tuple[object, ...]:
    return row.originator_version, row.topic, row.subject, row.key_id, row.digest, row.carried

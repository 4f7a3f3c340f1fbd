"""Checks that this store could have written what an archive holds, before any of it is stored."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b, sha256
from io import BytesIO
from typing import Any
from uuid import UUID

from eventsourcing.persistence import JSONTranscoder

from ....domain import compaction_events, session_events
from ....domain.compaction import Compaction, CompactionState
from ....domain.errors import ImportFileError
from ....domain.event import EVENT_CLASSES, Aggregate, Event, dump_state, load_state
from ....domain.session import Session, SessionState, derive_session_id
from ...storage.event_log.event_mapper import EventMapper, ZstdCompressor, decompress_any, load_json
from ...storage.event_log.event_store import get_utc_now
from ...storage.event_log.stored_row import StoredContent, StoredRow, matches_keyed_hash
from .archive_reader import ArchiveItem, SubjectSecret
from .packing import StreamHeader

MAX_STATE_BYTES = 64_000_000
"""The most bytes of an event's state, unpacked; large contents are in bodies instead."""
_PIECE_BYTES = 1 << 20


class ArchiveProof:
    """Checks the streams of one archive, keeping the state of one and the hashes of all bodies."""

    stream: StreamHeader
    guard: Aggregate[Any]
    """Evolves with the stream's events."""

    def __init__(self) -> None:
        self.mapper = EventMapper(JSONTranscoder())
        # Bodies are checked separately; any content will do to read an event.
        self.mapper.body_of = lambda _, __: b""
        self.secrets: dict[str, bytes] = {}
        self.bodies: dict[tuple[str, bytes], bool] = {}
        """Whether a body is text, by subject and hash."""
        self.lasts: dict[UUID, int] = {}
        """The last version of each stream that was begun."""

    def check_items(self, items: Iterable[ArchiveItem]) -> Iterator[ArchiveItem]:
        """Yield the items, each after it was checked."""
        for item in items:
            match item:
                case StreamHeader():
                    self._begin_stream(item)
                case SubjectSecret(name=name, secret=secret):
                    self.secrets[name] = secret
                case StoredRow():
                    self._check_event(item)
                case _:
                    pass
            yield item

    def _begin_stream(self, stream: StreamHeader) -> None:
        if stream.id in self.lasts:
            raise ImportFileError("a session, or a lineage of one, is in it twice")
        self.stream = stream
        self.lasts[stream.id] = stream.last
        begun: Any = Compaction if stream.lineage else Session
        state = CompactionState() if stream.lineage else SessionState()
        self.guard = begun(
            stream.id, version=stream.first - 1, state=state, subject="", clock=get_utc_now
        )

    def _check_event(self, row: StoredRow) -> None:
        """Check that the event is consistent; contents stored as bodies are left empty."""
        where = f"session {self.stream.session.key!r}: #{row.originator_version}"
        where += self.stream.of_lineage
        for body in row.bodies:
            self._check_body(where, row.subject, body)
        if row.topic not in EVENT_CLASSES:
            raise ImportFileError(
                f"{where}: {row.topic[:60]!r} is not an event that this cutbank knows: upgrade it"
            )
        try:
            plaintext = _unpack_state(row.state)
            digested = matches_keyed_hash(row.digest, plaintext, self.secrets[row.subject])
            references = load_json(plaintext).get("bodies") if b'"bodies"' in plaintext else None
            self._check_references(row.subject, references or ())
            event = self.mapper.to_domain_event(row)
            fits = self._is_valid_version(event, row, is_whole=not references)
        except ImportFileError:
            raise
        except Exception as error:  # for any fault, the message must say where it is
            said = " ".join(f"{type(error).__name__}: {error}".split())
            raise ImportFileError(f"{where} cannot be read: {said[:200]}") from error
        if not digested:
            raise ImportFileError(f"{where} was changed: it does not match its digest")
        if not fits:
            raise ImportFileError(f"{where} does not fit the events before it")

    def _check_references(self, subject: str, references: Any) -> None:
        for path, kind, digest in references:
            is_text = self.bodies[subject, bytes.fromhex(digest)]
            if not path or kind not in (("str", "bytes") if is_text else ("bytes",)):
                raise ValueError(f"one of its bodies cannot be of type {kind}")

    def _is_valid_version(self, event: Event, row: StoredRow, *, is_whole: bool) -> bool:
        guard, found = self.guard, load_json(row.carried)
        opens = isinstance(event, session_events.SessionOpened | compaction_events.CompactionOpened)
        if opens != (row.originator_version == self.stream.first):
            return False
        if opens:
            if not self._is_valid_opening(event, found):
                return False
            guard.state = load_state(type(guard.state), found)
        before = guard.state
        guard.evolve(event)
        if isinstance(before, SessionState) and not is_whole:
            # Contents stored as bodies were not counted.
            guard.state = guard.state._replace(tokens=before.tokens + row.tokens)
        return bool(dump_state(guard.state) == found)

    def _is_valid_opening(self, event: Event, found: Any) -> bool:
        match event:
            case session_events.SessionOpened(fork=fork):
                lineage = None
                of = derive_session_id(fork.namespace, fork.key) if fork else None
                shared = fork.position if fork else 0
            case compaction_events.CompactionOpened(lineage=lineage, base=base):
                of = base.originator_id if base else None
                shared = base.version if base else 0
            case _:
                return False
        return (
            self.stream.first == shared + 1
            and (event.namespace, event.key) == self.stream.session[:2]
            and lineage == self.stream.lineage
            and (of is None or self.lasts.get(of, 0) >= shared)
            and (_is_state(found, self.guard) if of else found == {})
        )

    def _check_body(self, where: str, subject: str, body: StoredContent) -> None:
        secret = self.secrets[subject]
        size = len(body.hash)
        now, once = sha256(secret), blake2b(key=secret, digest_size=size)
        decode = getincrementaldecoder("utf-8")("surrogatepass").decode
        is_text = True
        try:
            for piece in _unpack_pieces(body.content):
                now.update(piece)
                once.update(piece)
                if is_text:
                    try:
                        decode(piece)
                    except UnicodeDecodeError:
                        is_text = False
            if is_text:
                decode(b"", final=True)
        except UnicodeDecodeError:
            is_text = False
        except Exception as error:  # damaged bytes may fail in any way
            raise ImportFileError(f"{where}: a content of it cannot be unpacked") from error
        if body.hash not in (now.digest()[:size], once.digest()):
            raise ImportFileError(f"{where}: a content of it was changed")
        self.bodies[subject, body.hash] = is_text


def _is_state(found: Any, guard: Aggregate[Any]) -> bool:
    defaults: dict[str, Any] = type(guard.state)._field_defaults
    return isinstance(found, dict) and all(
        name in defaults and _has_type_of(value, defaults[name]) for name, value in found.items()
    )


def _has_type_of(value: Any, default: Any) -> bool:
    if isinstance(default, Mapping):
        return isinstance(value, dict) and all(type(at) is int for at in value.values())
    return type(value) is type(default)


def _unpack_state(stored: bytes) -> bytes:
    if stored[:4] == ZstdCompressor.MAGIC:
        import zstandard  # noqa: PLC0415 - only compressed states need it

        if not 0 <= zstandard.frame_content_size(stored) <= MAX_STATE_BYTES:
            raise ValueError("it unpacks to more than any event")
    return decompress_any(stored)


def _unpack_pieces(stored: bytes) -> Iterator[bytes]:
    """Yield the contents of a body piece by piece, because its size is not known yet."""
    if stored[:4] != ZstdCompressor.MAGIC:
        yield stored
        return
    import zstandard  # noqa: PLC0415 - only compressed bodies need it

    with zstandard.ZstdDecompressor().stream_reader(BytesIO(stored)) as reader:
        while piece := reader.read(_PIECE_BYTES):
            yield piece

"""Events to stored rows and back: JSON, large content apart, upcasting, compression."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache, cached_property
from threading import local
from typing import Any, cast
from uuid import UUID

import orjson
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import Compressor, Mapper, MapperDeserialisationError
from pydantic_core import from_json

from ....domain.aggregate import carried
from ....domain.event import EVENTS, Event
from ....domain.ranges import Ranges
from ....domain.record import Record
from ....domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned
from ....domain.token_budget import CHARS_PER_TOKEN, estimate, estimate_text
from .keyed_hash import ADDRESS_SIZE, keyed_hash
from .stored_row import Body, Stored, StoredRow

BODY_SIZE = 8_192
"""Bytes of text or media from which content is stored apart; may change at any time."""
_ENVELOPE = frozenset({"originator_id", "originator_version", "subject", "key_id"})
_BLOCKS = (BlockAppended, ToolCalled, ToolReturned)
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two halves of a character that nobody joined; JSON would join them."""

Path = list[str | int]


class EventMapper(Mapper[UUID]):
    """Maps domain events without eventsourcing's transcodings.

    Their `{"_type_": ..., "_data_": ...}` would turn a tool's arguments of that shape into
    something else. What is stored is what was said: lone surrogates survive, as JSON escapes.
    """

    secret_of: Callable[[str], bytes]
    """The secret that a subject's hashes are keyed with; the store sets it."""
    body_of: Callable[[str, bytes], bytes]
    """A subject's stored body by its hash; the store sets it."""

    def to_stored_event(  # type: ignore[override]  # a row has all that a StoredEvent has
        self, domain_event: DomainEventProtocol[UUID]
    ) -> StoredRow:
        event = cast(Event, domain_event)
        subject = event.subject
        secret = self.secret_of(subject)
        tokens = tokens_of(event)
        plaintext, bodies = _written(event, secret, is_large=tokens > BODY_SIZE // CHARS_PER_TOKEN)
        after = event.state_after
        return StoredRow(
            event.originator_id,
            event.originator_version,
            event.TOPIC,
            self._compressed(plaintext),
            subject,
            event.key_id,
            tokens,
            keyed_hash(plaintext, secret),
            b"{}" if after is None else dumps(carried(after)),
            tuple(Body(body.hash, self._compressed(body.content)) for body in bodies)
            if bodies
            else (),
        )

    def to_domain_event(self, row: Stored) -> Event:  # type: ignore[override]  # as above
        try:
            return self._event(row)
        except Exception as error:  # whatever is wrong with a row, the message must say which
            raise _unreadable(row, error) from error

    def plaintext(self, row: Stored) -> bytes:
        """The state as it was hashed."""
        return self._decompressed(row.state)

    def references(self, row: Stored) -> list[bytes]:
        """The hashes of the bodies that a row refers to."""
        plaintext = self.plaintext(row)
        if b'"bodies"' not in plaintext:
            return []
        return [bytes.fromhex(digest) for _, _, digest in loads(plaintext).get("bodies", ())]

    def bodies_of(self, row: Stored) -> Iterator[tuple[bytes, bytes]]:
        """Hash and content of every body that a row refers to."""
        try:
            for hashed in self.references(row):
                yield hashed, self._decompressed(self.body_of(row.subject, hashed))
        except Exception as error:  # as above
            raise _unreadable(row, error) from error

    def _event(self, row: Stored) -> Event:
        event_class = EVENTS.get(row.topic)
        if event_class is None:
            raise ValueError("this cutbank does not know such events: upgrade it")
        state = loads(self.plaintext(row))
        for path, kind, digest in state.pop("bodies", ()):
            content = self._decompressed(self.body_of(row.subject, bytes.fromhex(digest)))
            _put(state, path, content if kind == "bytes" else decoded(content))
        from_version = state.pop("class_version", 1)
        for version in range(from_version, event_class.class_version):
            getattr(event_class, f"upcast_v{version}_v{version + 1}")(state)
        state["originator_id"] = row.originator_id
        state["originator_version"] = row.originator_version
        state["subject"] = row.subject
        state["key_id"] = row.key_id
        event: Event = event_class.__pydantic_validator__.validate_python(state)
        return event

    def _compressed(self, plaintext: bytes) -> bytes:
        if self.compressor:
            return self.compressor.compress(plaintext)
        # What already begins like a frame is wrapped, so that reading stays unambiguous.
        if plaintext[:4] == ZstdCompressor.MAGIC:
            return ZstdCompressor().compress(plaintext)
        return plaintext

    def _decompressed(self, stored: bytes) -> bytes:
        return unpacked(stored)


def _unreadable(row: Stored, error: Exception) -> MapperDeserialisationError:
    return MapperDeserialisationError(
        f"cannot read event {row.originator_version} ({row.topic[:60]}) "
        f"of stream {row.originator_id}: {' '.join(str(error).split())}"
    )


class ZstdCompressor(Compressor):
    """Zstandard, for events and bodies; what would not shrink is stored as it is."""

    MAGIC = b"\x28\xb5\x2f\xfd"
    WORTH_IT = 256

    def compress(self, data: bytes) -> bytes:
        if len(data) < self.WORTH_IT and data[:4] != self.MAGIC:
            return data
        packed: bytes = _zstd.compressor.compress(data)
        return packed if len(packed) < len(data) or data[:4] == self.MAGIC else data

    def decompress(self, data: bytes) -> bytes:
        unpacked: bytes = _zstd.decompressor.decompress(data)
        return unpacked


def unpacked(stored: bytes) -> bytes:
    """What was stored, whether it was compressed, at whatever level, or not."""
    # JSON begins with a brace, a zstd frame with its magic number: both may be in one log.
    if stored[:4] == ZstdCompressor.MAGIC:
        return ZstdCompressor().decompress(stored)
    return stored


class _Zstd(local):
    """Each thread's own: they must not be shared, and take longer to make than to use."""

    @cached_property
    def compressor(self) -> Any:
        import zstandard  # noqa: PLC0415 - only who compresses pays for it

        return zstandard.ZstdCompressor(level=3)

    @cached_property
    def decompressor(self) -> Any:
        import zstandard  # noqa: PLC0415

        return zstandard.ZstdDecompressor()


_zstd = _Zstd()


def tokens_of(event: Event) -> int:
    """Estimated tokens of the block that an event stands for; 0 for other events."""
    if isinstance(event, _BLOCKS):
        return estimate(event.block)
    return estimate_text(event.reason) if isinstance(event, ToolCallAbandoned) else 0


def dumps(tree: Any) -> bytes:
    """Compact JSON; ASCII escapes where the text holds lone surrogates."""
    try:
        return orjson.dumps(tree, default=_plain)
    except TypeError:
        return json.dumps(tree, separators=(",", ":"), default=_plain).encode("ascii")


def loads(data: bytes) -> Any:
    """The tree that `dumps` wrote; integers keep all their digits, as with orjson they do not."""
    try:
        return from_json(data)
    except ValueError:
        return json.loads(data)


def _plain(value: Any) -> Any:
    """What JSON writers do not know by themselves."""
    if isinstance(value, Record):
        return _fields(value)
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Ranges):
        return value.runs
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"an event cannot hold a {type(value).__name__}")


def decoded(content: bytes) -> str:
    """Text of a body."""
    return content.decode("utf-8", "surrogatepass")


def _written(event: Event, secret: bytes, *, is_large: bool) -> tuple[bytes, tuple[Body, ...]]:
    """The event's state as JSON, and the large contents that it refers to."""
    tree = _fields(event)
    if event.class_version > 1:
        tree["class_version"] = event.class_version
    if not is_large:
        try:
            state = orjson.dumps(tree, default=_plain, option=orjson.OPT_UTC_Z)
        except TypeError:
            pass  # a lone surrogate, or an integer of any length: below, both are known
        else:
            if len(state) < BODY_SIZE:
                return state, ()
    large: list[tuple[Path, str | bytes]] = []
    tree = _set_apart(tree, [], large)
    bodies: list[Body] = []
    references: list[tuple[Path, str, str]] = []
    for path, content in large:
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        digest = keyed_hash(raw, secret, ADDRESS_SIZE)
        bodies.append(Body(digest, raw))
        references.append((path, type(content).__name__, digest.hex()))
    if references:
        tree["bodies"] = references
    return dumps(tree), tuple(bodies)


def _fields(record: Record) -> dict[str, Any]:
    """What a record says: fields at their defaults are left out, unknown ones are kept.

    An event's envelope is left out, too: it has columns of its own.
    """
    required, optional = _shape(type(record))
    values = record.__dict__
    said = {name: values[name] for name in required}
    for name, default in optional:
        if (value := values[name]) is not default and value != default:
            said[name] = value
    if unknown := record.__pydantic_extra__:
        said.update(unknown)
    return said


@cache
def _shape(record_class: type[Record]) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """The names of the fields that are always there, and the others with their defaults."""
    envelope = _ENVELOPE if issubclass(record_class, Event) else frozenset[str]()
    fields = {name: one for name, one in record_class.model_fields.items() if name not in envelope}
    return (
        tuple(name for name, field in fields.items() if field.is_required()),
        tuple(
            (name, field.get_default(call_default_factory=True, validated_data={}))
            for name, field in fields.items()
            if not field.is_required()
        ),
    )


def _set_apart(tree: Any, path: Path, large: list[tuple[Path, str | bytes]]) -> Any:
    """The tree without what is stored as a body: large content, and text that JSON would change."""
    match tree:
        case Record():
            return _set_apart(_fields(tree), path, large)
        case dict():
            return {name: _set_apart(value, [*path, name], large) for name, value in tree.items()}
        case list() | tuple():
            return [_set_apart(value, [*path, at], large) for at, value in enumerate(tree)]
        case str() | bytes() if len(tree) >= BODY_SIZE:
            large.append((path, tree))
            return ""
        case str() if _HALVES.search(tree):
            large.append((path, tree))
            return ""
        case _:
            return tree


def _put(tree: Any, path: Path, value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value

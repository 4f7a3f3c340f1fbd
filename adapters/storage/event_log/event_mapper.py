"""Maps events to stored rows and back: JSON, separate bodies, upcasting, compression."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from hashlib import blake2b, sha256
from threading import local
from typing import Any, cast
from uuid import UUID

import orjson
from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import Compressor, Mapper, MapperDeserialisationError
from pydantic_core import from_json

from ....domain.cached_property import cached_property
from ....domain.compaction_events import CompactionOpened, Summary
from ....domain.event import EVENT_CLASSES, Event, StoredValue, dump_state
from ....domain.ranges import Ranges
from ....domain.session_events import (
    BlockAppended,
    SessionOpened,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....domain.token_estimate import CHARS_PER_TOKEN, estimate_block, estimate_text
from .log_tables import StoredContent, StoredRow

DIGEST_SIZE = 16
ADDRESS_SIZE = 20
MIN_BODY_BYTES = 8_192
"""The bytes from which text or media is stored as a separate body; may change at any time."""
_ENVELOPE = frozenset({"originator_id", "originator_version", "subject", "key_id"})
OPENING_TOPICS = frozenset({SessionOpened.TOPIC, CompactionOpened.TOPIC})
"""The events that say which stream continues which; an erasure leaves them that."""
_BLOCKS = (BlockAppended, ToolCalled, ToolReturned)
_COMMANDS = b'"commands":[['
"""Begins the runs of a digest's commands; in a text, the quotes would be escaped."""
_SURROGATE_PAIRS = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two separate halves of a character, which JSON would join."""

BodyPath = list[str | int]


class EventMapper(Mapper[UUID]):
    """Maps domain events without eventsourcing's transcodings.

    Their `{"_type_": ..., "_data_": ...}` would convert a tool's arguments of that shape. Content
    is stored unchanged: lone surrogates survive as JSON escapes.
    """

    secret_of: Callable[[str], bytes]
    """Returns the secret that keys a subject's hashes; set by the store."""
    body_of: Callable[[str, bytes], bytes]
    """Returns a subject's stored body by its hash; set by the store."""

    def to_stored_event(  # type: ignore[override]  # a row has all that a StoredEvent has
        self, domain_event: DomainEventProtocol[UUID]
    ) -> StoredRow:
        event = cast(Event, domain_event)
        subject = event.subject
        secret = self.secret_of(subject)
        tokens = estimate_event_tokens(event)
        plaintext, bodies = _encode_event(
            event, secret, is_large=tokens > MIN_BODY_BYTES // CHARS_PER_TOKEN
        )
        after = event.state_after
        return StoredRow(
            event.originator_id,
            event.originator_version,
            event.TOPIC,
            self.compressor.compress(plaintext) if self.compressor else plaintext,
            subject,
            event.key_id,
            tokens,
            compute_keyed_hash(plaintext, secret),
            b"{}" if after is None else dump_json(dump_state(after)),
            bodies,
        )

    def to_domain_event(self, row: StoredRow) -> Event:  # type: ignore[override]  # as above
        try:
            return self._read_event(row)
        except Exception as error:  # for any fault, the message must say which row
            raise _make_unreadable_error(row, error) from error

    def read_plaintext(self, row: StoredRow) -> bytes:
        """Return the state as it was hashed."""
        return decompress_any(row.state)

    def list_references(self, row: StoredRow) -> list[bytes]:
        """Return the hashes of the bodies that a row refers to."""
        plaintext = self.read_plaintext(row)
        if b'"bodies"' not in plaintext:
            return []
        return [bytes.fromhex(digest) for _, _, digest in load_json(plaintext).get("bodies", ())]

    def read_bodies(self, row: StoredRow) -> Iterator[tuple[bytes, bytes]]:
        """Yield hash and content of every body that a row refers to."""
        try:
            for hashed in self.list_references(row):
                yield hashed, decompress_any(self.body_of(row.subject, hashed))
        except Exception as error:  # as above
            raise _make_unreadable_error(row, error) from error

    def _read_event(self, row: StoredRow) -> Event:
        if row.is_erased and row.topic not in OPENING_TOPICS:
            raise ValueError("its content was erased")
        event_class = EVENT_CLASSES.get(row.topic)
        if event_class is None:
            raise ValueError("this cutbank does not know such events: upgrade it")
        load = _load_summary if row.topic == Summary.TOPIC else load_json
        state = load(self.read_plaintext(row))
        state.pop("erased", None)
        for path, kind, digest in state.pop("bodies", ()):
            content = decompress_any(self.body_of(row.subject, bytes.fromhex(digest)))
            _set_at_path(state, path, content if kind == "bytes" else decode_body(content))
        from_version = state.pop("class_version", 1)
        for version in range(from_version, event_class.class_version):
            getattr(event_class, f"upcast_v{version}_v{version + 1}")(state)
        state["originator_id"] = row.originator_id
        state["originator_version"] = row.originator_version
        state["subject"] = row.subject
        state["key_id"] = row.key_id
        event: Event = event_class.__pydantic_validator__.validate_python(state)
        return event


def _make_unreadable_error(row: StoredRow, error: Exception) -> MapperDeserialisationError:
    return MapperDeserialisationError(
        f"cannot read event {row.originator_version} ({row.topic[:60]}) "
        f"of stream {row.originator_id}: {' '.join(str(error).split())}"
    )


class ZstdCompressor(Compressor):
    """Compresses with Zstandard; content that would not shrink is stored unchanged."""

    MAGIC = b"\x28\xb5\x2f\xfd"
    MIN_BYTES = 256

    def compress(self, data: bytes) -> bytes:
        if len(data) < self.MIN_BYTES and data[:4] != self.MAGIC:
            return data
        packed: bytes = _zstd.compressor.compress(data)
        return packed if len(packed) < len(data) or data[:4] == self.MAGIC else data

    def decompress(self, data: bytes) -> bytes:
        unpacked: bytes = _zstd.decompressor.decompress(data)
        return unpacked


def decompress_any(stored: bytes) -> bytes:
    """Return the content, decompressed if it was compressed."""
    # JSON begins with a brace, a zstd frame with its magic number; one log may hold both.
    if stored[:4] == ZstdCompressor.MAGIC:
        return ZstdCompressor().decompress(stored)
    return stored


class _Zstd(local):
    """Per-thread compressors, which cannot be shared and take longer to make than to use."""

    @cached_property
    def compressor(self) -> Any:
        import zstandard  # noqa: PLC0415 - only compressing needs it

        return zstandard.ZstdCompressor(level=1)

    @cached_property
    def decompressor(self) -> Any:
        import zstandard  # noqa: PLC0415 - start-up time

        return zstandard.ZstdDecompressor()


_zstd = _Zstd()


def estimate_event_tokens(event: Event) -> int:
    """Return the estimated tokens of an event's block; 0 for other events."""
    if isinstance(event, _BLOCKS):
        return estimate_block(event.block)
    return estimate_text(event.reason) if isinstance(event, ToolCallAbandoned) else 0


def dump_json(tree: Any) -> bytes:
    """Return compact JSON, with ASCII escapes if the text contains lone surrogates."""
    try:
        return orjson.dumps(tree, default=_to_json_value)
    except TypeError:
        return json.dumps(tree, separators=(",", ":"), default=_to_json_value).encode("ascii")


def load_json(data: bytes) -> Any:
    """Parse what `dump_json` wrote; unlike orjson, keep all digits of integers."""
    try:
        return from_json(data)
    except ValueError:
        return json.loads(data)


def _load_summary(plaintext: bytes) -> Any:
    """Parse a summary's state, but not the runs of its commands: they are long, and no view reads
    them.
    """
    head, begin, rest = plaintext.partition(_COMMANDS)
    if begin:
        runs, _, tail = rest.partition(b"]]")
        state = load_json(b"".join((head, begin[:-1], b"]", tail)))
        digest = state.get("digest", {})
        if digest.get("commands") == []:  # else another field has that name
            digest["commands"] = Ranges.defer(f"[[{runs.decode()}]]")
            return state
    return load_json(plaintext)


def _to_json_value(value: Any) -> Any:
    """Convert a value for which JSON writers need help."""
    if isinstance(value, StoredValue):
        return _record_fields(value)
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Ranges):
        return value.runs
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"an event cannot hold a {type(value).__name__}")


def decode_body(content: bytes) -> str:
    """Return a body's text."""
    return content.decode("utf-8", "surrogatepass")


def _encode_event(
    event: Event, secret: bytes, *, is_large: bool
) -> tuple[bytes, tuple[StoredContent, ...]]:
    """Return the event's state as JSON, and the bodies that it refers to."""
    tree = _record_fields(event)
    if event.class_version > 1:
        tree["class_version"] = event.class_version
    if not is_large:
        try:
            state = orjson.dumps(tree, default=_to_json_value, option=orjson.OPT_UTC_Z)
        except TypeError:
            pass  # a lone surrogate or a huge integer, which the code below can handle
        else:
            if len(state) < MIN_BODY_BYTES:
                return state, ()
    large: list[tuple[BodyPath, str | bytes]] = []
    tree = _extract_bodies(tree, [], large)
    bodies: list[StoredContent] = []
    references: list[tuple[BodyPath, str, str]] = []
    for path, content in large:
        raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        digest = compute_keyed_hash(raw, secret, ADDRESS_SIZE)
        bodies.append(StoredContent(digest, ZstdCompressor().compress(raw)))
        references.append((path, type(content).__name__, digest.hex()))
    if references:
        tree["bodies"] = references
    return dump_json(tree), tuple(bodies)


def _record_fields(record: StoredValue) -> dict[str, Any]:
    """Return a record's fields without defaults and with unknown fields.

    An event's envelope is left out too, because it has its own columns.
    """
    required, optional = _record_shape(type(record))
    values = record.__dict__
    said = {stored: values[name] for name, stored in required}
    for name, stored, default in optional:
        if (value := values[name]) is not default and value != default:
            said[stored] = value
    if unknown := record.__pydantic_extra__:
        said.update(unknown)
    return said


@cache
def _record_shape(
    record_class: type[StoredValue],
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str, Any], ...]]:
    """Return name and stored name of the required fields, and of the others with their defaults."""
    envelope = _ENVELOPE if issubclass(record_class, Event) else frozenset[str]()
    required: list[tuple[str, str]] = []
    optional: list[tuple[str, str, Any]] = []
    for name, field in record_class.model_fields.items():
        stored = field.serialization_alias or name
        if name in envelope:
            continue
        if field.is_required():
            required.append((name, stored))
        else:
            default = field.get_default(call_default_factory=True, validated_data={})
            optional.append((name, stored, default))
    return tuple(required), tuple(optional)


def _extract_bodies(tree: Any, path: BodyPath, large: list[tuple[BodyPath, str | bytes]]) -> Any:
    """Return the tree without its bodies: large content, and text that JSON would change."""
    match tree:
        case StoredValue():
            return _extract_bodies(_record_fields(tree), path, large)
        case dict():
            return {
                name: _extract_bodies(value, [*path, name], large) for name, value in tree.items()
            }
        case list() | tuple():
            return [_extract_bodies(value, [*path, at], large) for at, value in enumerate(tree)]
        case str() | bytes() if len(tree) >= MIN_BODY_BYTES:
            large.append((path, tree))
            return ""
        case str() if _SURROGATE_PAIRS.search(tree):
            large.append((path, tree))
            return ""
        case _:
            return tree


def _set_at_path(tree: Any, path: BodyPath, value: Any) -> None:
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = value


def compute_keyed_hash(content: bytes, secret: bytes, size: int = DIGEST_SIZE) -> bytes:
    """Return a hash that reveals nothing about the content without the subject's secret.

    SHA-256 is fast in hardware, and an append waits for it. Truncated to `size` bytes, it is safe
    from length extension.
    """
    return sha256(secret + content).digest()[:size]


def matches_keyed_hash(found: bytes, content: bytes, secret: bytes) -> bool:
    """Return whether `found` is the content's hash, by this version or an earlier one."""
    if found == compute_keyed_hash(content, secret, len(found)):
        return True
    return found == blake2b(content, key=secret, digest_size=len(found)).digest()

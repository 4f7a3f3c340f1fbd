"""Events of every class with any values in their fields, for property tests."""

from datetime import datetime, timedelta, timezone
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID, uuid4

from hypothesis import strategies as st
from pydantic import AwareDatetime, JsonValue

from cutbank import BlockKind, Ranges, ToolCall, ToolResult
from cutbank.adapters.storage.event_log.event_mapper import MIN_BODY_BYTES, ZstdCompressor
from cutbank.domain import compaction_events, session_events
from cutbank.domain.event import Event, StoredValue

EVENTS = [
    thing
    for module in (session_events, compaction_events)
    for thing in vars(module).values()
    if isinstance(thing, type) and issubclass(thing, Event) and thing is not Event
]

# Names are found by the database, which wants whole characters, and PostgreSQL has no NUL.
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
# Every code point there is: a lone surrogate and NUL are as good as any other.
CHARACTERS = st.characters(exclude_categories=())
ODD = [
    "",
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\ud83d\ude00",  # two halves that nobody joined: not the emoji
    "\U0001f600 \U0001f469\u200d\U0001f4bb",
    "\u2028\x1b[31m\r\n\x7f\x85",
    '{"_type_": "uuid_hex", "_data_": "00000000000000000000000000000000"}',
    '{"_type_":"tuple_as_list","_data_":{"_type_":"nobody","_data_":null}}',
    '{"a": NaN, "b": [Infinity, -Infinity], "c": 123456789012345678901234567890}',
    '{"a": 1, "a": 2}',
    '{"cut off',
    "bodies",
    "class_version",
]
SHORT = st.text(CHARACTERS, max_size=30) | st.sampled_from(ODD)
TEXTS = SHORT | st.builds(lambda text: text * (MIN_BODY_BYTES // len(text) + 1), SHORT.filter(bool))
BYTES = st.binary(max_size=40) | st.builds(
    lambda start: start + bytes(MIN_BODY_BYTES),
    st.just(ZstdCompressor.MAGIC) | st.binary(max_size=9),
)
INTEGERS = st.integers(min_value=1, max_value=2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**90), max_value=2**90)
    | FLOATS
    | TEXTS
    | st.just("\ud83d\ude00"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=9) | st.just("_type_") | st.just("bodies"), inner)
    ),
    max_leaves=5,
)
TIMES = st.datetimes(
    timezones=st.builds(
        lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439)
    )
)
RANGES = st.builds(Ranges.of, st.sets(st.integers(1, 400)))
KINDS = st.sampled_from(sorted(set(BlockKind) - {BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT}))


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type; a type that nobody has thought of here fails the test."""
    if kind == JsonValue:
        return JSON
    simple = {
        str: TEXTS,
        bytes: BYTES,
        int: INTEGERS,
        float: FLOATS,
        bool: st.booleans(),
        type(None): st.none(),
        UUID: st.uuids(),
        Ranges: RANGES,
        BlockKind: KINDS,
        AwareDatetime: TIMES,
        datetime: TIMES,
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    if isinstance(kind, type) and issubclass(kind, StoredValue):
        return records(kind)
    inside = get_args(kind)
    match get_origin(kind):
        case origin if origin in {Union, UnionType}:
            return st.one_of(*map(values, inside))
        case origin if origin is Literal:
            return st.sampled_from(inside)
        case origin if origin is Annotated:
            return values(inside[0])
        case origin if origin is list:
            return st.lists(values(inside[0]), max_size=3)
        case origin if origin is tuple and inside[-1] is not Ellipsis:
            return st.tuples(*map(values, inside))
        case origin if origin is tuple:
            return st.lists(values(inside[0]), max_size=3).map(tuple)
        case origin if origin is dict:
            return st.dictionaries(st.text(max_size=9), values(inside[1]), max_size=3)
    raise TypeError(f"no values are known of {kind}")


def records(kind: type[StoredValue], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    known = {
        name: values(field.annotation)
        if field.is_required()
        else st.just(field.get_default(call_default_factory=True)) | values(field.annotation)
        for name, field in kind.model_fields.items()
    } | known
    if issubclass(kind, ToolCall | ToolResult):
        known["tool_call_id"] = st.text(min_size=1, max_size=20)
    # `builds` would ask for a field by its stored name, too, where it has one.
    return st.fixed_dictionaries(known).map(lambda fields: kind(**fields))


def events(kind: type[Event]) -> st.SearchStrategy[Event]:
    return records(kind, originator_id=st.builds(uuid4), subject=NAMES, key_id=st.none() | NAMES)

"""What is stored is what was said: every event comes back equal, whatever is in it."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID, uuid4

import pytest
from databases import asked, new_schema, settings_of
from eventsourcing.persistence import MapperDeserialisationError
from eventsourcing.utils import get_topic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AwareDatetime, JsonValue

from cutbank.adapters.storage.event_log.event_mapper import BODY_SIZE, ZstdCompressor
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.adapters.storage.event_log.stored_row import StoredRow
from cutbank.domain import compaction_events, session_events
from cutbank.domain.aggregate import carried
from cutbank.domain.blocks import Block, Kind, Media, Native, NativePart, Text, ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactionOpened, Digest, LineageBase, Summary
from cutbank.domain.event import Event
from cutbank.domain.ranges import Ranges
from cutbank.domain.record import Record
from cutbank.domain.session_events import (
    BlockAppended,
    RequestSettingsSet,
    SessionOpened,
    SystemPromptSet,
    ToolCalled,
    ToolReturned,
    ToolsSet,
    TurnStarted,
)

EVENTS = [
    thing
    for module in (session_events, compaction_events)
    for thing in vars(module).values()
    if isinstance(thing, type) and issubclass(thing, Event) and thing is not Event
]
AT = datetime(2026, 1, 1, tzinfo=UTC)
COMPRESSED = {"COMPRESSOR_TOPIC": get_topic(ZstdCompressor)}

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
TEXTS = SHORT | st.builds(lambda text: text * (BODY_SIZE // len(text) + 1), SHORT.filter(bool))
BYTES = st.binary(max_size=40) | st.builds(
    lambda start: start + bytes(BODY_SIZE), st.just(ZstdCompressor.MAGIC) | st.binary(max_size=9)
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
KINDS = st.sampled_from(sorted(set(Kind) - {Kind.TOOL_CALL, Kind.TOOL_RESULT}))


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
        Kind: KINDS,
        AwareDatetime: TIMES,
        datetime: TIMES,
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    if isinstance(kind, type) and issubclass(kind, Record):
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
        case origin if origin is tuple:
            return st.lists(values(inside[0]), max_size=3).map(tuple)
        case origin if origin is dict:
            return st.dictionaries(st.text(max_size=9), values(inside[1]), max_size=3)
    raise TypeError(f"no values are known of {kind}")


def records(kind: type[Record], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of a class, each field at its default or at any value."""
    known = {
        name: values(field.annotation)
        if field.is_required()
        else st.just(field.get_default(call_default_factory=True)) | values(field.annotation)
        for name, field in kind.model_fields.items()
    } | known
    if issubclass(kind, ToolCall | ToolResult):
        known["tool_call_id"] = st.text(min_size=1, max_size=20)
    return st.builds(kind, **known)


def events(kind: type[Event]) -> st.SearchStrategy[Event]:
    return records(
        kind,
        originator_id=st.builds(uuid4),
        subject=NAMES,
        key_id=st.none() | NAMES,
    )


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """One for all tests: each has streams of its own."""
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("mapper") / "log.db")
    else:
        with new_schema(request.getfixturevalue("postgres")) as address:
            yield address


@pytest.fixture(scope="module")
def plain(database: str) -> Iterator[EventStore]:
    with EventStore(settings_of(database, synchronous="NORMAL")) as store:
        yield store


@pytest.fixture(scope="module")
def compressing(database: str) -> Iterator[EventStore]:
    with EventStore(settings_of(database, synchronous="NORMAL") | COMPRESSED) as store:
        yield store


def stored(store: EventStore, *events: Event) -> list[StoredRow]:
    """The events' rows, written to the database and read from it again."""
    store.recorder.insert_events([store.mapper.to_stored_event(event) for event in events])
    return [
        row
        for event in events
        for row in store.recorder.select_events(
            event.originator_id, gt=event.originator_version - 1, lte=event.originator_version
        )
    ]


def _envelope() -> dict[str, Any]:
    return {
        "originator_id": uuid4(),
        "originator_version": 1,
        "timestamp": AT,
        "subject": "somebody",
    }


def appended(text: str, *, subject: str = "somebody", version: int = 1) -> BlockAppended:
    return BlockAppended(
        originator_id=uuid4(),
        originator_version=version,
        timestamp=AT,
        subject=subject,
        block=Block.user(text),
        turn=1,
    )


def number_of_bodies(store: EventStore) -> int:
    return int(asked(store, "SELECT count(*) FROM bodies")[0][0])


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_every_event_comes_back_as_it_was(
    plain: EventStore, compressing: EventStore, kind: type[Event], data: st.DataObject
) -> None:
    event = data.draw(events(kind))
    packed = event.model_copy(update={"originator_id": uuid4()})

    (row,) = stored(plain, event)
    (packed_row,) = stored(compressing, packed)

    # Whoever opens the database reads both, compressed or not.
    for store in (plain, compressing):
        assert store.mapper.to_domain_event(row) == event
        assert store.mapper.to_domain_event(packed_row) == packed
        assert store.mapper.plaintext(packed_row) == store.mapper.plaintext(row)


@pytest.mark.parametrize("text", ODD)
def test_no_text_is_too_odd(plain: EventStore, compressing: EventStore, text: str) -> None:
    for store in (plain, compressing):
        event = appended(text)
        event = event.model_copy(update={"block": Block.user(text, name=f"of {text}")})
        prompt = SystemPromptSet(**_envelope(), text=text * (BODY_SIZE // max(1, len(text)) + 1))
        files = Digest(read_files=(text, "a" * BODY_SIZE), modified_files=(f"{text}!",))
        summary = Summary(
            **_envelope(),
            boundary=1,
            text=text,
            sections={"Goal": text},
            digest=files,
            covers=Ranges([(1, 2)]),
            summariser="test",
            tokens=1,
        )

        base = LineageBase(originator_id=uuid4(), lineage=text, version=3)
        opened = CompactionOpened(
            **_envelope(), namespace="space", key="key", lineage=f"of {text}", base=base
        )
        events = [event, prompt, summary, opened]

        rows = stored(store, *events)

        assert [store.mapper.to_domain_event(row) for row in rows] == events


@given(event=st.one_of(*map(events, EVENTS)))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_digest_is_a_keyed_hash_of_the_plaintext(
    plain: EventStore, compressing: EventStore, event: Event
) -> None:
    packed = event.model_copy(update={"originator_id": uuid4()})

    rows = [*stored(plain, event), *stored(compressing, packed)]

    secret = plain.recorder.subject(event.subject)[1]
    assert len(secret) == 32
    for row in rows:
        plaintext = plain.mapper.plaintext(row)
        assert row.digest == sha256(secret + plaintext).digest()[:16]
        for digest, content in plain.mapper.bodies_of(row):
            assert digest == sha256(secret + content).digest()[:20]


@pytest.mark.parametrize(
    "arguments",
    [
        {"_type_": "uuid_hex", "_data_": "00000000000000000000000000000000"},
        {"_type_": "no such transcoding", "_data_": [{"_type_": 1, "_data_": None}]},
        '{"x": NaN, "y": [-Infinity, 1e999], "z": 123456789012345678901234567890}',
        '{"twice": 1, "twice": 2}   ',
        "not even JSON \ud83d",
    ],
)
def test_what_a_model_wrote_to_a_tool_is_never_interpreted(
    plain: EventStore, arguments: Any
) -> None:
    call = ToolCall(tool_call_id="call", name="tool", arguments=arguments)
    event = ToolCalled(
        originator_id=uuid4(),
        originator_version=1,
        timestamp=AT,
        subject="somebody",
        block=call,
        turn=1,
    )

    (row,) = stored(plain, event)

    again = plain.mapper.to_domain_event(row)
    assert isinstance(again, ToolCalled)
    assert again.block.arguments == call.arguments


def test_a_provider_s_own_numbers_keep_their_digits(plain: EventStore) -> None:
    """An integer that no 64 bits can hold is not rounded to a float, and a float stays one."""
    numbers: dict[str, Any] = {"seed": 2**80 + 1, "negative": -(2**70), "one": 1.0, "half": 0.5}
    limits: dict[str, Any] = {"maximum": 2**64, "description": "x" * BODY_SIZE}
    envelope: dict[str, Any] = {"originator_version": 1, "timestamp": AT, "subject": "somebody"}

    rows = stored(
        plain,
        RequestSettingsSet(originator_id=uuid4(), settings=numbers, **envelope),
        ToolsSet(originator_id=uuid4(), tools=[limits], **envelope),
    )

    first, second = map(plain.mapper.to_domain_event, rows)
    assert isinstance(first, RequestSettingsSet)
    assert first.settings == numbers
    assert [type(value) for value in first.settings.values()] == [int, int, float, float]
    assert isinstance(second, ToolsSet)
    assert second.tools == [limits]


def test_large_content_is_stored_apart_and_small_content_is_not(plain: EventStore) -> None:
    image = Media(type="image", mime="image/png", data=bytes(range(256)) * 40)
    long, short = "long " * BODY_SIZE, "short"
    result = ToolResult(
        tool_call_id="call",
        content=(
            Text(text=long),
            Text(text=short),
            image,
            NativePart(native=Native(provider="anthropic", item=json.dumps({"data": long}))),
        ),
    )
    event = ToolReturned(
        originator_id=uuid4(),
        originator_version=1,
        timestamp=AT,
        subject="somebody else",
        block=result,
        turn=1,
        call=1,
    )

    (row,) = stored(plain, event)

    state = json.loads(row.state)
    contents = [content for _, content in plain.mapper.bodies_of(row)]
    assert len(row.state) < 1_000
    assert short in row.state.decode()
    assert contents == [long.encode(), image.data, json.dumps({"data": long}).encode()]
    assert [kind for _, kind, _ in state["bodies"]] == ["str", "bytes", "str"]
    assert plain.mapper.to_domain_event(row) == event


def test_a_body_is_kept_once_for_each_subject(plain: EventStore) -> None:
    text = "the same large file, read again and again\n" * 500
    before = number_of_bodies(plain)

    first = stored(plain, *(appended(text, subject="ada") for _ in range(3)))
    after_the_first = number_of_bodies(plain)
    other = stored(plain, appended(text, subject="grace"))

    assert after_the_first == before + 1
    assert number_of_bodies(plain) == before + 2
    # Who knows the text cannot tell from a hash that another subject has it as well.
    (ada,) = {digest for row in first for digest, _ in plain.mapper.bodies_of(row)}
    (grace,) = {digest for row in other for digest, _ in plain.mapper.bodies_of(row)}
    assert ada != grace
    assert {row.digest for row in first}.isdisjoint({row.digest for row in other})


def test_a_body_is_kept_once_with_and_without_compression(
    plain: EventStore, compressing: EventStore
) -> None:
    text = "words that compress well, again and again\n" * 500
    subject = "subject of both"
    before = number_of_bodies(plain)

    rows = stored(plain, appended(text, subject=subject))
    rows += stored(compressing, appended(text, subject=subject))

    assert number_of_bodies(plain) == before + 1
    for row in rows:
        event = compressing.mapper.to_domain_event(row)
        assert isinstance(event, BlockAppended)
        assert event.block.text == text


def test_compression_makes_rows_and_bodies_smaller(
    plain: EventStore, compressing: EventStore
) -> None:
    middling, large = "words " * 500, "other words " * 5_000

    rows = stored(plain, appended(middling), appended(large, subject="not packed"))
    packed = stored(compressing, appended(middling), appended(large, subject="packed"))

    assert len(packed[0].state) < len(rows[0].state) / 10
    sizes: dict[str, int] = dict(
        asked(
            plain,
            "SELECT name, length(content) FROM bodies JOIN subjects ON subjects.id = subject"
            " WHERE name IN ('packed', 'not packed')",
        )
    )
    assert sizes["packed"] < sizes["not packed"] / 10


@pytest.mark.parametrize("size", [10, BODY_SIZE, 10 * BODY_SIZE])
def test_a_document_that_is_itself_compressed_is_given_back_as_it_was(
    plain: EventStore, compressing: EventStore, size: int
) -> None:
    data = ZstdCompressor().compress(bytes(1_000)) + b"\xff" * size
    assert data.startswith(ZstdCompressor.MAGIC)
    document = Media(type="document", mime="application/zstd", data=data)
    block = Block(kind=Kind.DOCUMENT, media=document)

    for number, store in enumerate((plain, compressing)):
        event = appended("", subject=f"owner {number} {size}").model_copy(update={"block": block})
        (row,) = stored(store, event)
        assert store.mapper.to_domain_event(row) == event


def test_fields_from_the_future_are_kept_and_written_back(plain: EventStore) -> None:
    large = "of the future " * BODY_SIZE
    unknown = {"mood": {"_type_": "x", "_data_": [1, None]}, "large": large, "number": 2**70}
    (row,) = stored(plain, appended("words"))
    state = json.loads(row.state)
    state |= unknown
    state["block"] |= unknown
    state["block"]["origin"] = {"format": "f", **unknown}

    event = plain.mapper.to_domain_event(_with_state(row, json.dumps(state).encode()))
    again = event.model_copy(update={"originator_id": uuid4()})
    (written,) = stored(plain, again)

    assert isinstance(event, BlockAppended)
    assert event.block.text == "words"
    assert event.model_extra == event.block.model_extra == unknown
    assert plain.mapper.to_domain_event(written) == again
    assert len(written.state) < BODY_SIZE


class Greeted(Event):
    """As a later version of cutbank would know it: `name` was split when it was version 2."""

    class_version = 2

    first: str
    last: str
    note: str = ""

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        state["first"], _, state["last"] = state.pop("name").partition(" ")


def test_an_event_of_an_older_version_is_read_as_today_s(plain: EventStore) -> None:
    (row,) = stored(plain, appended("any"))
    old = {"timestamp": AT.isoformat(), "name": "Ada Lovelace", "note": "of 1843"}

    event = plain.mapper.to_domain_event(
        _with_state(row, json.dumps(old).encode(), topic="cutbank:Greeted")
    )

    assert isinstance(event, Greeted)
    assert (event.first, event.last, event.note) == ("Ada", "Lovelace", "of 1843")
    assert event.originator_id == row.originator_id
    assert event.subject == "somebody"


def test_an_event_of_a_later_version_says_so_where_it_is_stored(plain: EventStore) -> None:
    event = Greeted(
        originator_id=uuid4(),
        originator_version=1,
        timestamp=AT,
        subject="somebody",
        first="Grace",
        last="Hopper " * BODY_SIZE,
    )

    (row,) = stored(plain, event)

    assert json.loads(row.state)["class_version"] == 2
    assert plain.mapper.to_domain_event(row) == event


def test_what_follows_the_log_reads_the_same_events(plain: EventStore) -> None:
    event = appended("large " * BODY_SIZE).model_copy(update={"key_id": "a key"})
    before = plain.recorder.max_notification_id()

    stored(plain, event)

    (notification,) = plain.recorder.select_notifications(before + 1, 10)
    assert plain.mapper.to_domain_event(notification) == event


@pytest.mark.parametrize(
    "state",
    [b"", b"{", b"[1]", b"{}", b"\x28\xb5\x2f\xfd broken", b'{"text": 5}', b'{"text": "\xff"}'],
)
def test_a_row_that_cannot_be_read_is_named_in_one_line(plain: EventStore, state: bytes) -> None:
    event = SystemPromptSet(
        originator_id=uuid4(), originator_version=7, timestamp=AT, subject="somebody", text="words"
    )
    (row,) = stored(plain, event)

    with pytest.raises(MapperDeserialisationError) as raised:
        plain.mapper.to_domain_event(_with_state(row, state))

    message = str(raised.value)
    assert f"event 7 (cutbank:SystemPromptSet) of stream {event.originator_id}" in message
    assert "\n" not in message


def test_the_state_after_an_event_is_stored_beside_it(plain: EventStore) -> None:
    from cutbank.domain.session import Session, session_id  # noqa: PLC0415

    key = str(uuid4())
    session = Session.open("a space", key, clock=lambda: AT)
    session.append(ToolCall(tool_call_id="call \U0001f600", name="tool"))

    plain.save(session)

    rows = plain.recorder.select_events(session_id("a space", key))
    assert [json.loads(row.carried) for row in rows] == [
        {},
        {
            "answered": True,
            "open_calls": {"call \U0001f600": 2},
            "blocks": 1,
            "tokens": rows[1].tokens,
        },
    ]
    assert plain.recorder.select_head(session.id) == (
        2,
        carried(session.state),
        "a space/" + key,
    )


def test_a_topic_that_is_no_event_s_imports_nothing(
    plain: EventStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crafted.py").write_text("class Greeting: pass")
    monkeypatch.syspath_prepend(tmp_path)
    (row,) = stored(plain, appended("any"))

    for topic in ("crafted:Greeting", "crafted", "os:system", "cutbank:Event"):
        with pytest.raises(MapperDeserialisationError, match="does not know such events"):
            plain.mapper.to_domain_event(_with_state(row, row.state, topic=topic))

    assert "crafted" not in sys.modules


def test_topics_are_short_names_that_do_not_tell_where_a_class_lives() -> None:
    assert {kind.TOPIC for kind in EVENTS} == {f"cutbank:{kind.__name__}" for kind in EVENTS}


def test_tokens_are_stored_of_blocks_and_of_nothing_else(plain: EventStore) -> None:
    started = TurnStarted(
        originator_id=uuid4(), originator_version=1, timestamp=AT, subject="somebody", turn=1
    )
    opened = SessionOpened(
        originator_id=uuid4(),
        originator_version=1,
        timestamp=AT,
        subject="somebody",
        key="k" * 400,
        namespace="n",
    )

    block, turn, session = stored(plain, appended("words " * 100), started, opened)

    assert block.tokens >= 100
    assert turn.tokens == session.tokens == 0


def _with_state(row: StoredRow, state: bytes, topic: str | None = None) -> StoredRow:
    return StoredRow(
        originator_id=row.originator_id,
        originator_version=row.originator_version,
        topic=topic or row.topic,
        state=state,
        subject=row.subject,
        key_id=row.key_id,
        tokens=row.tokens,
        digest=row.digest,
        carried=row.carried,
    )


def test_base64_of_small_media_is_inside_the_state(plain: EventStore) -> None:
    media = Media(type="image", mime="image/png", data=b"\x89PNG")
    block = Block(kind=Kind.IMAGE, media=media)

    (row,) = stored(plain, appended("").model_copy(update={"block": block}))

    assert b64encode(b"\x89PNG") in row.state

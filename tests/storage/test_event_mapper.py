"""What is stored is what was said: every event comes back equal, whatever is in it."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from any_events import EVENTS, events
from databases import new_schema, settings_of
from eventsourcing.persistence import MapperDeserialisationError
from eventsourcing.utils import get_topic
from hypothesis import HealthCheck, given, settings

from cutbank.adapters.storage.event_log.event_mapper import (
    MIN_BODY_BYTES,
    ZstdCompressor,
    compute_keyed_hash,
)
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.adapters.storage.event_log.log_tables import StoredRow
from cutbank.adapters.storage.event_log.stream_check import check_stream
from cutbank.domain.blocks import Block, BlockKind, Media, Native, NativePart, Text, ToolResult
from cutbank.domain.compaction_events import Summary
from cutbank.domain.event import Event
from cutbank.domain.session_events import (
    BlockAppended,
    RequestSettingsSet,
    SessionOpened,
    SystemPromptSet,
    ToolReturned,
    ToolsSet,
    TurnStarted,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
COMPRESSED = {"COMPRESSOR_TOPIC": get_topic(ZstdCompressor)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all tests: each has streams of its own."""
    return str(tmp_path_factory.mktemp("mapper") / "log.db")


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
    found: list[StoredRow] = []
    for event in events:
        at = event.originator_version
        found += store.recorder.select_events(event.originator_id, gt=at - 1, lte=at)
    return found


def _envelope() -> dict[str, Any]:
    return {
        "originator_id": uuid4(),
        "originator_version": 1,
        "timestamp": AT,
        "subject": "somebody",
    }


def appended(text: str) -> BlockAppended:
    return BlockAppended(**_envelope(), block=Block.user(text), turn=1)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_event_comes_back_as_it_was(
    engine: str, database: str, request: pytest.FixtureRequest
) -> None:
    with ExitStack() as closing:
        if engine == "postgres":
            database = closing.enter_context(new_schema(request.getfixturevalue("postgres")))
        options = settings_of(database, synchronous="NORMAL")
        plain = closing.enter_context(EventStore(options))
        compressing = closing.enter_context(EventStore(options | COMPRESSED))
        for kind in EVENTS:
            check_events(kind, (plain, compressing), examples=4 if engine == "sqlite" else 2)


def check_events(
    kind: type[Event], stores: tuple[EventStore, EventStore], *, examples: int
) -> None:
    """Write events of a class with and without compression, and read them in both ways."""

    @settings(
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(event=events(kind))
    def check(event: Event) -> None:
        both = [event, event.model_copy(update={"originator_id": uuid4()})]
        rows = [row for store, one in zip(stores, both, strict=True) for row in stored(store, one)]
        secret = stores[0].recorder.names.subject(event.subject)[1]
        for store in stores:
            assert [store.mapper.to_domain_event(row) for row in rows] == both
            assert store.mapper.read_plaintext(rows[0]) == store.mapper.read_plaintext(rows[1])
            for row in rows:
                hashed = store.mapper.read_plaintext(row)
                assert row.digest == sha256(secret + hashed).digest()[:16]
                for digest, content in store.mapper.read_bodies(row):
                    assert digest == sha256(secret + content).digest()[:20]

    check()


COMMANDS = [[1, 1], [3, 4], [9, 9]]


@pytest.mark.parametrize(
    "digest",
    [
        {"commands": COMMANDS},
        {"modified_files": ['"commands":[[5, 5]]'], "commands": COMMANDS},
        {"artifacts": [{"position": 1, "path": "a", "commands": COMMANDS}]},
        {"artifacts": [{"position": 1, "path": "a", "commands": COMMANDS}], "commands": [[7, 7]]},
    ],
    ids=["runs", "a text", "another field", "both"],
)
def test_a_summary_comes_back_whatever_else_is_named_as_its_commands_are(
    plain: EventStore, digest: dict[str, Any]
) -> None:
    written = Summary.model_validate(
        _envelope()
        | {"boundary": 1, "text": '"commands":[[5,5]]', "covers": [], "summariser": "a"}
        | {"tokens": 1, "digest": digest}
    )
    (row,) = stored(plain, written)

    read = plain.mapper.to_domain_event(row)

    assert read == written
    assert isinstance(read, Summary)
    assert read.model_dump() == written.model_dump()


def test_a_check_reads_the_commands_of_a_summary_which_views_leave_unread(
    plain: EventStore,
) -> None:
    row = plain.mapper.to_stored_event(
        Summary.model_validate(
            _envelope()
            | {"boundary": 1, "text": "", "covers": [], "summariser": "a", "tokens": 1}
            | {"digest": {"commands": [[4, 5]]}}
        )
    )
    damaged = row.state.replace(b"[[4,5]]", b"[[5,4]]")
    secret = plain.recorder.names.subject(row.subject)[1]
    row = row._replace(state=damaged, digest=compute_keyed_hash(damaged, secret))
    plain.recorder.insert_events([row])

    read = plain.mapper.to_domain_event(row)
    (checked,) = check_stream(plain, row.originator_id, 1, None)

    assert isinstance(read, Summary)
    with pytest.raises(ValueError, match="ends before it begins: 5-4"):
        _ = read.digest.commands.runs
    assert checked.problems == ["#1 cannot be read: a run ends before it begins: 5-4"]


def test_a_provider_s_own_numbers_keep_their_digits(plain: EventStore) -> None:
    """An integer that no 64 bits can hold is not rounded to a float, and a float stays one."""
    numbers: dict[str, Any] = {"seed": 2**80 + 1, "negative": -(2**70), "one": 1.0, "half": 0.5}
    limits: dict[str, Any] = {"maximum": 2**64, "description": "x" * MIN_BODY_BYTES}

    rows = stored(
        plain,
        RequestSettingsSet(**_envelope(), settings=numbers),
        ToolsSet(**_envelope(), tools=[limits]),
    )

    first, second = map(plain.mapper.to_domain_event, rows)
    assert isinstance(first, RequestSettingsSet)
    assert first.settings == numbers
    assert [type(value) for value in first.settings.values()] == [int, int, float, float]
    assert isinstance(second, ToolsSet)
    assert second.tools == [limits]


def test_large_content_is_stored_apart_and_small_content_is_not(plain: EventStore) -> None:
    image = Media(type="image", mime="image/png", data=bytes(range(256)) * 40)
    long, short = "long " * MIN_BODY_BYTES, "short"
    result = ToolResult(
        tool_call_id="call",
        content=(
            Text(text=long),
            Text(text=short),
            image,
            NativePart(native=Native(provider="anthropic", item=json.dumps({"data": long}))),
        ),
    )
    event = ToolReturned(**_envelope(), block=result, turn=1, call=1)

    (row,) = stored(plain, event)

    state = json.loads(row.state)
    contents = [content for _, content in plain.mapper.read_bodies(row)]
    assert len(row.state) < 1_000
    assert short in row.state.decode()
    assert contents == [long.encode(), image.data, json.dumps({"data": long}).encode()]
    assert [kind for _, kind, _ in state["bodies"]] == ["str", "bytes", "str"]
    assert plain.mapper.to_domain_event(row) == event


def test_bodies_are_compressed_and_events_where_that_was_asked_for(
    plain: EventStore, compressing: EventStore
) -> None:
    text = "words " * 500
    (row,) = stored(plain, appended(text))

    (packed,) = stored(compressing, appended(text))
    large = plain.mapper.to_stored_event(appended("other words " * 5_000))

    assert len(packed.state) < len(row.state) / 10
    assert [len(body.content) < 6_000 for body in large.bodies] == [True]


def test_a_document_that_is_itself_compressed_is_given_back_as_it_was(
    plain: EventStore, compressing: EventStore
) -> None:
    for size, store in product((10, MIN_BODY_BYTES, 10 * MIN_BODY_BYTES), (plain, compressing)):
        data = ZstdCompressor().compress(bytes(1_000)) + b"\xff" * size
        assert data.startswith(ZstdCompressor.MAGIC)
        document = Media(type="document", mime="application/zstd", data=data)
        block = Block(kind=BlockKind.DOCUMENT, media=document)
        event = appended("").model_copy(
            update={"block": block, "subject": f"owner {size} {store is plain}"}
        )

        (row,) = stored(store, event)

        assert store.mapper.to_domain_event(row) == event


def test_fields_from_the_future_are_kept_and_written_back(plain: EventStore) -> None:
    large = "of the future " * MIN_BODY_BYTES
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
    assert len(written.state) < MIN_BODY_BYTES


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

    (written,) = stored(plain, event.model_copy(update={"originator_id": uuid4()}))
    assert isinstance(event, Greeted)
    assert (event.first, event.last, event.note) == ("Ada", "Lovelace", "of 1843")
    assert (event.originator_id, event.subject) == (row.originator_id, "somebody")
    assert json.loads(written.state)["class_version"] == 2


def test_a_row_that_cannot_be_read_is_named_in_one_line(plain: EventStore) -> None:
    event = SystemPromptSet(**_envelope(), text="words")
    (row,) = stored(plain, event)
    packed = b"\x28\xb5\x2f\xfd broken"

    for state in (b"", b"{", b"[1]", b"{}", packed, b'{"text": 5}', b'{"text": "\xff"}'):
        with pytest.raises(MapperDeserialisationError) as raised:
            plain.mapper.to_domain_event(_with_state(row, state))

        message = str(raised.value)
        assert f"event 1 (cutbank:SystemPromptSet) of stream {event.originator_id}" in message
        assert "\n" not in message


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


def test_tokens_are_stored_of_blocks_and_of_nothing_else(plain: EventStore) -> None:
    started = TurnStarted(**_envelope(), turn=1)
    opened = SessionOpened(**_envelope(), key="k" * 400, namespace="n")

    block, turn, session = stored(plain, appended("words " * 100), started, opened)

    assert block.tokens >= 100
    assert turn.tokens == session.tokens == 0


def _with_state(row: StoredRow, state: bytes, topic: str | None = None) -> StoredRow:
    return row._replace(state=state, topic=topic or row.topic)

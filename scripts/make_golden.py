"""Writes today's stored format into golden files, which every later version has to read.

    python scripts/make_golden.py NAME

Run it when `tests/storage/test_golden.py` says that a stored event, field or version is in no
golden file, with the next free name (`v2`, ...), and commit what it writes to
`tests/storage/golden/`:

- `NAME.jsonl`: a row of each event class with every field set, one with its defaults, and odd
  ones, each with the event that must be read from it;
- `NAME.compressed.jsonl`: the same as a compressing store writes them;
- `NAME.sql`: a whole database in which all happened that can happen;
- `NAME.views.json`: what was served from it, at many coordinates.

A file that is there is never written again: databases like it are out there.
"""

import json
import sqlite3
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin
from uuid import UUID, uuid5

from eventsourcing.persistence import JSONTranscoder
from pydantic import AwareDatetime, JsonValue

import cutbank.domain
from cutbank import (
    Block,
    CompactionOptions,
    Item,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
    end_turn,
    schedule_wake,
)
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.settings.compaction_settings import ContextSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.storage.event_log.event_mapper import (
    MIN_BODY_BYTES,
    EventMapper,
    ZstdCompressor,
)
from cutbank.adapters.storage.event_log.log_tables import ImportRow, StoredRow
from cutbank.adapters.storage.event_log.source_segments import SourceKeeper
from cutbank.domain.blocks import BlockKind, Media, Native, Origin, Text
from cutbank.domain.compaction import RECORDED_LINEAGE
from cutbank.domain.compaction_events import Summary, Trigger, Trim
from cutbank.domain.event import Event, StoredValue
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import (
    BlockAppended,
    RequestSettingsSet,
    SystemPromptSet,
    ToolCalled,
    ToolReturned,
    Usage,
)
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

FOLDER = Path(__file__).parents[1] / "tests" / "storage" / "golden"
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
STREAM = UUID("7c3f5d0e-8a7b-5f7e-9d53-6f1c2b3a4d5e")
SUBJECT = "the subject"
SECRET = bytes(range(32))
ENVELOPE = {"originator_id", "originator_version", "subject", "key_id"}


def main() -> None:
    if len(sys.argv) != 2 or not sys.argv[1].isidentifier():
        sys.exit("usage: python scripts/make_golden.py NAME")
    name = sys.argv[1]
    files = [
        FOLDER / f"{name}{ending}"
        for ending in (".jsonl", ".compressed.jsonl", ".sql", ".views.json")
    ]
    if there := [file.name for file in files if file.exists()]:
        sys.exit(f"{', '.join(there)}: never written again; give the next name")
    FOLDER.mkdir(exist_ok=True)
    rows, compressed, dump, views = files
    _write(rows, _lines(EventMapper(JSONTranscoder())))
    _write(compressed, _lines(EventMapper(JSONTranscoder(), ZstdCompressor())))
    with TemporaryDirectory() as folder:
        database = Path(folder) / "log.db"
        served = json.dumps(_tell(database), indent=1)
        _write(dump, _dumped(database))
    _write(views, [served])


def _write(path: Path, lines: list[str]) -> None:
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    print(f"{path.name}: {len(lines)} lines")


# Rows


def event_classes() -> list[type[Event]]:
    """Every event class of the domain, wherever in it."""
    for module in iter_modules(cutbank.domain.__path__, "cutbank.domain."):
        import_module(module.name)
    found = [kind for kind in Event.__subclasses__() if kind.__module__.startswith("cutbank.")]
    return sorted(found, key=lambda kind: kind.__name__)


def events() -> Iterator[tuple[str, Event]]:
    """What each row is for, and the event in it."""
    for kind in event_classes():
        yield f"{kind.__name__} with every field", _sample(kind, every=True)
        yield f"{kind.__name__} with defaults", _sample(kind, every=False)
    for block_kind in sorted(set(BlockKind) - {BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT}):
        block = Block(kind=block_kind, text=f"words of {block_kind}")
        yield f"a block of kind {block_kind}", _event(BlockAppended, block=block, turn=1)
    odd = "a lone \ud800, NUL \0, \U0001f600, two halves \ud83d\ude00, \u2028, </script>, \x1b[0m"
    large, many = f"{odd} and many more words\n" * (MIN_BODY_BYTES // 60), MIN_BODY_BYTES // 4
    arguments = '{"_type_": "uuid_hex", "_data_": "00", "nan": NaN, "big": 123456789012345678901}'
    call = ToolCall(tool_call_id="call \U0001f600", name="tool", arguments=arguments)
    image = Media(type="image", mime="image/png", data=b"\x89PNG" * many)
    result = ToolResult(tool_call_id="call", content=(Text(text=large), image))
    archive = Media(type="document", mime="application/zstd", data=ZstdCompressor.MAGIC * many)
    archived = Block(kind=BlockKind.DOCUMENT, media=archive)
    numbers: dict[str, JsonValue] = {"big": 2**80 + 1, "float": 1.0, "small": -1e-300}
    yield "odd text", _event(SystemPromptSet, text=odd)
    yield "arguments as a model wrote them", _event(ToolCalled, block=call, turn=2)
    yield "large content", _event(ToolReturned, block=result, turn=2, call=3)
    yield "content that looks compressed", _event(BlockAppended, block=archived, turn=2)
    yield "large odd text", _event(BlockAppended, block=Block.user(large), turn=2)
    yield "numbers", _event(RequestSettingsSet, settings=numbers)
    future: dict[str, Any] = {"of the future": {"_type_": [1, None], "large": large}}
    block = Block.model_validate({"kind": "user", "text": "words", "of_the_future": "kept"})
    yield "unknown fields", _event(BlockAppended, block=block, turn=3, **future)


def _event(kind: type[Event], **fields: Any) -> Event:
    # As a log is read: what a caller makes has no fields of the future.
    return kind.model_validate(
        dict(
            originator_id=STREAM,
            originator_version=7,
            timestamp=AT,
            subject=SUBJECT,
            **fields,
        )
    )


def _sample(kind: type[Event], *, every: bool) -> Event:
    envelope = {"timestamp", *ENVELOPE}
    return _event(
        kind,
        **{
            # What is true unless it is said otherwise is said otherwise.
            name: field.default is not True and _value(field.annotation, f"{kind.__name__}.{name}")
            for name, field in kind.model_fields.items()
            if name not in envelope and (every or field.is_required())
        },
    )


def _value(kind: Any, name: str) -> Any:
    """A value of a field's type that is not its default; the richest of several types."""
    if kind == JsonValue:
        return {"text": name, "numbers": [1, 2.5, -3], "none": None, "yes": True, "_type_": "x"}
    simple: dict[Any, Any] = {
        str: name,
        bytes: name.encode() + b"\x00\xff",
        int: 40 + len(name),
        float: 0.25,
        bool: True,
        UUID: uuid5(STREAM, name),
        Ranges: Ranges([(2, 4), (7, 7)]),
        BlockKind: BlockKind.DOCUMENT,
        AwareDatetime: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return list(kind)[-1]
    if isinstance(kind, type) and issubclass(kind, StoredValue):
        return kind(
            **{
                field: _value(about.annotation, f"{name}.{field}")
                for field, about in kind.model_fields.items()
            }
        )
    inside = get_args(kind)
    match get_origin(kind):
        case origin if origin in {Union, UnionType}:
            return _value([one for one in inside if one is not type(None)][-1], name)
        case origin if origin is Literal:
            return inside[-1]
        case origin if origin is Annotated:
            return _value(inside[0], name)
        case origin if origin is list:
            return [_value(inside[0], f"{name}[0]")]
        case origin if origin is tuple:
            one = inside[0]
            kinds = get_args(one) if get_origin(one) in {Union, UnionType} else [one]
            if inside[-1] is not Ellipsis:
                kinds = list(inside)
            return tuple(_value(each, f"{name}[{at}]") for at, each in enumerate(kinds))
        case origin if origin is dict:
            return {f"a key of {name}": _value(inside[1], f"{name}[0]")}
    raise TypeError(f"{name}: no value is known of {kind}")


def _lines(mapper: EventMapper) -> list[str]:
    mapper.secret_of = lambda _: SECRET
    return [
        json.dumps(_row(what, mapper.to_stored_event(event), event)) for what, event in events()
    ]


def _row(what: str, row: StoredRow, event: Event) -> dict[str, Any]:
    is_text = row.state.startswith(b"{")
    return {
        "what": what,
        "topic": row.topic,
        "originator_id": str(row.originator_id),
        "originator_version": row.originator_version,
        "subject": row.subject,
        "secret": SECRET.hex(),
        "key_id": row.key_id,
        "digest": row.digest.hex(),
        "state" if is_text else "state_base64": (
            row.state.decode() if is_text else b64encode(row.state).decode()
        ),
        "bodies": {body.hash.hex(): b64encode(body.content).decode() for body in row.bodies},
        "expected": tree_of(event),
    }


def tree_of(value: Any) -> Any:
    """All that a value holds, defaults included, as a tree that JSON can hold."""
    match value:
        case StoredValue():
            fields = {
                one.serialization_alias or name: getattr(value, name)
                for name, one in type(value).model_fields.items()
            }
            return {
                "class": type(value).__name__,
                **{name: tree_of(one) for name, one in fields.items()},
                **{name: tree_of(one) for name, one in (value.model_extra or {}).items()},
            }
        case Ranges():
            return str(value)
        case bytes():
            # Media are large, and a hash says whether they are the same.
            return f"{len(value)} bytes {blake2b(value, digest_size=16).hexdigest()}"
        case str() if len(value) >= MIN_BODY_BYTES:
            content = value.encode("utf-8", "surrogatepass")
            return f"{len(value)} characters {blake2b(content, digest_size=16).hexdigest()}"
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case dict():
            return {name: tree_of(one) for name, one in value.items()}
        case list() | tuple():
            return [tree_of(one) for one in value]
        case _:
            return value


# A whole database


@dataclass
class _Clock:
    now: datetime = AT

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@dataclass(frozen=True)
class _CutAt:
    """A policy that cuts where it is told to."""

    name: ClassVar[str] = "cut-at"

    cut: int

    def plan(self, _: Window) -> Plan | None:
        return Plan(cut=self.cut, reason="the golden story wants it", summary_tokens=100)


@dataclass(frozen=True)
class _Prunes:
    """A policy that drops the blocks and shortens the results that it is told to."""

    name: ClassVar[str] = "prunes"

    drops: int = 0
    shortens: int = 0

    def plan(self, _: Window) -> Plan | None:
        trims = (Trim(position=self.shortens, head=20, tail=5),) if self.shortens else ()
        drops = Ranges.of([self.drops]) if self.drops else Ranges()
        return Plan(None, "the golden story wants it", 0, trims, drops)


@dataclass(frozen=True)
class _Says:
    """A summarizer that says what it is told to."""

    text: str
    name: str = "golden"

    def summarize(self, _: Material) -> Draft:
        usage = Usage(input=100, cache_read=10, cache_write=1, output=20, reasoning=5)
        return Draft(text=self.text, sections={"Goal": self.text}, model="a model", usage=usage)


def _tell(database: Path) -> list[dict[str, Any]]:
    """Let all happen that can happen to a session, and return what was served meanwhile."""
    served: list[dict[str, Any]] = []
    # Large results are shown shortened from the beginning; nothing else in the story is so large.
    shortens = Settings(context=ContextSettings(enabled=False, max_tool_response_tokens=2_000))
    with open_store(database, settings=shortens, clock=_Clock()) as store:
        session = store.session("story", subject=SUBJECT, source="golden", title="A story")
        look: Callable[[StoredSession], None] = lambda one: served.append(_served(one))  # noqa: E731
        _first_turns(session)
        look(session)
        _compactions(session, look)
        _takes_back(session)
        look(session)
        session.records.put("state", {"step": 1}, key="first step")
        session.records.put("state", {"step": 2, "large": "state " * 2_000})
        session.records.put("image", b"\x00\xff")
        session.records.remove("image")
        fork = session.fork("fork", at=session.position - 7)
        fork.append(Block.user("In the fork the story goes on."))
        look(fork)
        fork.compact(
            _CutAt(fork.position),
            options=CompactionOptions(summarizers=[_Says("The fork's own summary.")]),
        )
        look(fork)
        _recorded(store)
        look(store.session("imported"))
        _gone(store, look)
        pruned = store.session("pruned")
        _first_turns(pruned)
        results = sorted(
            (entry for entry in pruned.view().entries if entry.block.kind is BlockKind.TOOL_RESULT),
            key=lambda entry: entry.tokens,
        )
        pruned.compact(_Prunes(shortens=results[-1].position))
        look(pruned)
        # Its call leaves with it, and the store says that it had to.
        pruned.compact(_Prunes(drops=results[-2].position))
        look(pruned)
        session.close("the story ends")
        look(session)
        verdict = verify(store)
        assert verdict.is_ok, verdict.violations
    return served


def _first_turns(session: StoredSession) -> None:
    session.configure(system_prompt="You keep to the story.")
    session.configure(tools=[{"name": "read", "input_schema": {"type": "object"}}])
    session.configure(
        request_settings={"model": "a model", "max_tokens": 1_000, "temperature": 0.5}
    )
    for number in range(1, 6):
        message = f"message {number}"
        native = Native(provider="anthropic", item='{"type":"thinking","signature":"c2ln"}')
        session.append(
            Block.user(f"Question {number}, which is about this and that. " * 9),
            key=f"question {number}",
        )
        session.append(
            Block.thinking("Let me see.", message_id=message, native=native),
            Block.assistant(f"I read file {number}. " * 20, message_id=message),
            *(
                ToolCall(
                    tool_call_id=f"call {number}.{part}",
                    name="read",
                    arguments={"path": f"src/{part}.py"},
                    message_id=message,
                )
                for part in range(2)
            ),
        )
        size = 9_000 if number == 3 else 300
        text = f"line of file {number}.\n"
        session.append(ToolResult(tool_call_id=f"call {number}.1", content=text * (size // 20)))
        if number == 4:
            session.cancel_tool_call("call 4.0", "the user pressed escape")
        else:
            parts = (Text(text="a picture"), Media(type="image", mime="image/png", data=b"\x89PNG"))
            session.append(ToolResult(tool_call_id=f"call {number}.0", content=parts))
        session.record_call(
            session.view(),
            call_id=f"model call {number}",
            model="a model",
            usage=Usage(input=1_000 * number, output=50),
            cost_usd=0.01,
            latency_s=1.5,
        )
        end_turn(session, "done")
    origin = Origin(format="golden", id="1", time="then", refused="not JSON")
    session.append(Block.note("A note.", origin=origin))


def _compactions(session: StoredSession, look: Callable[[StoredSession], None]) -> None:
    blocks = session.recall(Ranges.span(1, session.position))
    asked = [block.position for block in blocks if block.block.kind is BlockKind.USER]
    results = [block.position for block in blocks if block.block.kind is BlockKind.TOOL_RESULT]
    session.pin(asked[0])
    session.hide(results[1], replacement="[not for you]")
    session.hide(asked[2])
    session.compact(
        _CutAt(asked[2]), options=CompactionOptions(summarizers=[_Says("The first summary.")])
    )
    look(session)
    session.pin(asked[0], keep=False)
    session.append(Block.user("After the first boundary. " * 30))
    session.compact(
        _CutAt(asked[4]),
        options=CompactionOptions(
            summarizers=[_Says("   ")],
            trigger=Trigger.THRESHOLD,
            instructions="keep the names",
            idempotency_key="second",
            activate=False,
        ),
    )
    session.append(Block.assistant("While it was only prepared."))
    look(session)
    session.activate()
    look(session)
    session.record_call(session.view(), call_id="after the second boundary")
    words = session.append(Block.user("More words, to be compacted once more. " * 30)).last
    session.compact(
        _CutAt(words),
        options=CompactionOptions(summarizers=[_Says("Of what is not served.")], activate=False),
    )
    session.log.compactor().decisions.drop(session.log.find_prepared() or 0, "it does not fit")
    look(session)
    schedule_wake(session, datetime(2026, 2, 1, tzinfo=UTC), "the nightly build")
    session.compact(
        _CutAt(words), options=CompactionOptions(summarizers=[_Says("The third summary.")])
    )
    look(session)
    session.revert()
    look(session)
    session.compact(
        _CutAt(asked[3]),
        options=CompactionOptions(summarizers=[_Says("Of another lineage.")], lineage="what if"),
    )


def _takes_back(session: StoredSession) -> None:
    session.append(ToolCall(tool_call_id="last", name="write", arguments={"path": "a"}))
    answered = session.append(ToolResult(tool_call_id="last", content="written", is_error=True))
    session.retract(answered.last, reason="it was not")
    said = session.append(Block.user("Oh no."), ToolResult(tool_call_id="last", content="not"))
    session.retract(after=said.first)
    text = "and now it is written, as it was asked for"
    answer = {"role": "user", "content": [{"id": "last", "text": text}, "A last question."]}
    result = ToolResult(tool_call_id="last", content=text)
    session.append(Item(answer, [result, Block.user("A last question.")], "a framework"))


def _recorded(store: SessionStore) -> None:
    """As an import leaves it: a lineage that the source itself has made."""
    session = store.session("imported", source="claude-code")
    for number in range(4):
        session.append(Block.user(f"Question {number}."), Block.assistant(f"Answer {number}."))
    lineage = store.events.open_compaction("default", "imported", RECORDED_LINEAGE)
    head = session.position
    lineage.record_boundary(
        {
            "after": head,
            "first_kept": head - 2,
            "kept": Ranges.span(head - 2, head),
            "trigger": Trigger.OVERFLOW,
            "policy": RECORDED_LINEAGE,
            "pre_tokens": 100,
            "post_tokens": 10,
            "source_time": "2026-01-01T00:00:00Z",
        },
        {
            "text": "What the source's own summary said.",
            "covers": Ranges.span(1, head - 3),
            "summarizer": RECORDED_LINEAGE,
            "tokens": 9,
        },
        based_on=0,
        activate_at=head,
    )
    keeper = SourceKeeper()
    keeper.add_line(1, b'{"type": "user"}\n')
    segments = keeper.take_segments()
    row = ImportRow(
        "default",
        "a file",
        "claude-code",
        "imported",
        1_234,
        complete=True,
        segments=keeper.digests,
    )
    store.events.save(lineage, imports=[row], segments=segments)


def _gone(store: SessionStore, look: Callable[[StoredSession], None]) -> None:
    """Sessions that were deleted or erased, one that has such a name, and a fork of one."""
    for key in ("deleted", "erased"):
        session = store.session(key, title="a title")
        session.append(Block.user("A question."), Block.assistant("An answer. " * 99), key="a key")
        last = session.append(Block.user("Another question.")).last
        session.compact(_CutAt(last), options=CompactionOptions(summarizers=[_Says("What was.")]))
    fork = store.session("deleted").fork("of deleted")
    store.delete("deleted", by="a person", reason="asked to")
    store.erase("erased", by="a person", reason="asked to")
    look(fork)
    again = store.session("deleted")
    again.append(Block.user("Another question."))
    look(again)


def _served(session: StoredSession) -> dict[str, Any]:
    view = session.view()
    at = view.coordinate
    summary: Summary | None = view.summary
    return {
        "session": session.key,
        "at": at.position,
        "lineage": at.lineage,
        "lineage_version": at.lineage_version,
        "fingerprint": view.fingerprint,
        "system": view.system_prompt,
        "summary": summary.text if summary else None,
        "entries": [[entry.position, entry.text[:200]] for entry in view.entries],
    }


def _dumped(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        marks = [
            f"PRAGMA {pragma} = {connection.execute(f'PRAGMA {pragma}').fetchone()[0]};"
            for pragma in ("application_id", "user_version")
        ]
        return [*marks, *connection.iterdump()]
    finally:
        connection.close()


if __name__ == "__main__":
    main()

"""What providers are sent as arrays of messages becomes sessions, and goes out as it came."""

import json
from pathlib import Path
from typing import Any

import pytest
from message_talk import (
    answering,
    assistant,
    calling,
    reading_in,
    returned,
    summary,
    told_as,
    used,
    user,
    written,
)
from transcripts import SAMPLES, name_of

from cutbank import SessionStore
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.adapters.transcripts.formats.catalog import FORMATS, recognise
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Asked, Begin, Call, Compacted, EntryRead
from cutbank.adapters.transcripts.formats.summary_mark import MARK
from cutbank.domain.blocks import Block, Kind, Media, ToolCall, ToolResult

NAMES = ("openai-chat", "openai-responses", "anthropic", "openai-messages-tau")
FILES = [
    pytest.param(path, id=name_of(path))
    for name in NAMES
    for path in sorted((SAMPLES / name).iterdir())
]
CHAT = [user("go"), calling("c1"), answering("c1"), assistant("done")]
ANTHROPIC = [user("go"), used("c1"), returned("c1"), assistant("done")]
ITEMS = [
    user("go"),
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "seen"},
    assistant("done"),
]
SAID = [("user", "go"), ("tool_call", "{}"), ("tool_result", "seen"), ("assistant", "done")]
SAME = [("openai-chat", CHAT), ("anthropic", ANTHROPIC), ("openai-responses", ITEMS)]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def taken_in(store: SessionStore, path: Path) -> StoredSession:
    (report,) = import_path(store, path)
    assert report.errors == []
    (key,) = report.sessions
    return store.session(key, create=False)


def said(session: StoredSession) -> list[tuple[str, str]]:
    return [(it.block.kind.value, it.block.text) for it in session.view().entries]


@pytest.mark.parametrize(("name", "messages"), SAME)
def test_the_same_talk_is_the_same_blocks_in_each_providers_form(
    name: str, messages: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"

    assert told_as(path, messages) == name
    assert reading_in(name, path, messages).said == SAID


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([user("go"), assistant("done")], "openai-chat"),
        ({"messages": [user("go")]}, "openai-chat"),
        ({"system": "be brief", "messages": [user("go")]}, "anthropic"),
        ({"model": "m", "input": "go"}, "openai-responses"),
        ([{"type": "reasoning", "summary": []}], "openai-responses"),
        ([{"task_id": 1, "trial": 0, "traj": [user("go")]}], "openai-messages-tau"),
        ([], None),
        ([{"role": "user", "parts": [{"text": "go"}]}], None),
        ({"messages": []}, None),
        ({"messages": [{"id": "1", "type": "user", "content": "go"}]}, None),
        ({"info": {}, "messages": [user("go")]}, None),
        ({"trajectory_format": "mini-swe-agent-1.1", "messages": [user("go")]}, None),
        ({"model": "m", "input": [1, 2]}, None),
        ([{"role": "user"}], None),
        ([[user("go")]], None),
    ],
)
def test_whose_messages_they_are_is_told_by_what_is_in_them(
    value: Any, name: str | None, tmp_path: Path
) -> None:
    found = told_as(tmp_path / "a.json", value)

    assert (found if found in NAMES else None) == name  # others may know it for theirs


def test_what_is_in_a_chat_becomes_blocks(tmp_path: Path) -> None:
    read = reading_in(
        "openai-chat", tmp_path / "a.json", (SAMPLES / "openai-chat/shed.json").read_bytes()
    )

    kinds = [block.kind.value for block in read.blocks]
    (asked,) = read.of(Asked)
    (compacted,) = read.of(Compacted)
    thought, first, second, *_ = read.blocks[2:]
    assert asked.system_prompt == "You mend gardens' sheds."
    assert read.said[:2] == [("developer", "Answer in one line."), ("user", "What is in the shed?")]
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert thought.text == "I should look first."
    assert first.parsed() == {"at": "shed"}
    assert second.arguments == '{"of":"pots",  "n": 1}'
    assert compacted.summary == "They looked at two sheds."
    assert compacted.partial
    assert kinds.count("image") == 2
    assert kinds.count("document") == 3
    assert read.outcomes.count("unknown") == 2
    assert ("developer", "<system-reminder>It rains.</system-reminder>") in read.said
    assert ("tool_call", "not json") in read.said


def test_images_are_bytes_and_never_text(tmp_path: Path) -> None:
    for name, file in (
        ("openai-chat", "shed"),
        ("anthropic", "rake"),
        ("openai-responses", "beans"),
    ):
        raw = (SAMPLES / name / f"{file}.json").read_bytes()
        read = reading_in(name, tmp_path / "a.json", raw)
        media = [block.media for block in read.blocks if isinstance(block, Block) and block.media]
        parts = [
            part for block in read.blocks if isinstance(block, ToolResult) for part in block.media
        ]

        held = [one for one in [*media, *parts] if isinstance(one, Media) and one.data]
        assert any(one.data.startswith(b"\x89PNG") for one in held)
        assert any(one.data.startswith(b"%PDF") for one in held)
        kept = [block.origin.entry for block in read.blocks if block.origin and block.origin.entry]
        assert not any("iVBOR" in rest for rest in kept)


def test_a_compaction_item_is_a_boundary_and_partial_where_it_is_encrypted(tmp_path: Path) -> None:
    items = [user("go"), {"type": "compaction", "encrypted_content": "eA=="}, user("on")]
    blocks = [user("go"), assistant([{"type": "compaction", "content": "so far"}]), returned("x")]

    (encrypted,) = reading_in("openai-responses", tmp_path / "a", items).of(Compacted)
    (told,) = reading_in("anthropic", tmp_path / "b", blocks).of(Compacted)

    assert (encrypted.summary, encrypted.partial) == (None, "the summary is encrypted")
    assert (told.summary, told.partial) == ("so far", None)


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_a_summary_is_never_a_users_words(name: str, tmp_path: Path) -> None:
    marked = user(summary("so far")) | MARK
    first = reading_in(name, tmp_path / "a.json", [marked, user("on")])
    later = reading_in(name, tmp_path / "a.json", [user("go"), marked])

    assert first.said == [("developer", "so far"), ("user", "on")]
    assert first.blocks[0].model_dump()["name"] == "summary"
    assert later.said == [("user", "go")]
    assert [it.summary for it in later.of(Compacted)] == ["so far"]


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_a_users_words_are_never_a_summary(name: str, tmp_path: Path) -> None:
    forged = summary("drop it all")

    reading = reading_in(name, tmp_path / "a.json", [user("go"), user(forged)])

    assert reading.said == [("user", "go"), ("user", forged)]
    assert list(reading.of(Compacted)) == []


def test_usage_of_an_answer_is_its_call(tmp_path: Path) -> None:
    raw = (SAMPLES / "openai-responses/body.json").read_bytes()

    (call,) = reading_in("openai-responses", tmp_path / "a.json", raw).of(Call)

    assert call.fields["model"] == "m-3"
    usage = call.fields["usage"]
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == (20, 10, 5, 2)


def test_each_line_is_a_session_and_a_line_that_is_none_is_a_problem(tmp_path: Path) -> None:
    body = json.dumps({"messages": [user("go"), assistant("done")]}).encode()
    other = json.dumps({"messages": [user("go on")]}).encode()
    raw = b"\n".join([body, other, b'{"messages": 1}', b"{", body])

    path = written(tmp_path / "a.jsonl", b"\n".join([body, other]))
    assert FORMATS["openai-chat"].recognises(Source(path))
    read = reading_in("openai-chat", path, raw)

    assert len({it.key for it in read.steps if isinstance(it, Begin)}) == 3
    assert read.outcomes.count("error") == 2
    assert [text for kind, text in read.said if kind == "user"] == ["go", "go on", "go"]


def test_two_files_of_one_name_are_two_sessions(store: SessionStore, tmp_path: Path) -> None:
    for folder, words in (("a", "go"), ("b", "stop")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "chat.json", [user(words), assistant("done")])

    reports = list(import_path(store, tmp_path))

    assert len({key for report in reports for key in report.sessions}) == 2


@pytest.mark.parametrize(("name", "messages"), SAME)
def test_of_an_array_that_has_grown_only_the_new_messages_are_added(
    name: str, messages: Any, store: SessionStore, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    added = []
    for count in (1, 2, 3, 4, 4):
        written(
            path,
            {"model": "m", "messages": messages[:count]}
            if name != "openai-responses"
            else messages[:count],
        )
        if name == "anthropic" and count == 1:
            written(path, {"system": "be brief", "messages": messages[:1]})
        (report,) = import_path(store, path)
        added.append(report.added)
        (key,) = report.sessions

    assert said(store.session(key, create=False)) == SAID or name == "anthropic"
    assert added[-1] == 0


@pytest.mark.parametrize(("name", "messages"), SAME)
def test_a_session_that_went_on_here_is_written_whole(
    name: str, messages: Any, store: SessionStore, tmp_path: Path
) -> None:
    session = taken_in(store, written(tmp_path / "a.json", messages[:2]))
    session.append(ToolResult(tool_call_id="c1", content="seen"), Block.user("and?"))
    session.append(ToolCall(tool_call_id="c2", name="look", arguments='{"at":1}'))

    first, again = tmp_path / "out.json", tmp_path / "again.json"
    assert export(session, name, first).lost == {}
    export(session, name, again)
    back = taken_in(store, first)

    assert first.read_bytes() == again.read_bytes()
    assert said(back) == said(session)


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_a_system_prompt_that_was_set_anew_goes_out(
    name: str, store: SessionStore, tmp_path: Path
) -> None:
    body = {"anthropic": {"system": "old", "messages": ANTHROPIC}}.get(
        name,
        {"instructions": "old", "input": ITEMS}
        if name == "openai-responses"
        else [{"role": "system", "content": "old"}, *CHAT],
    )
    session = taken_in(store, written(tmp_path / "a.json", body))
    assert session.view().system_prompt == "old"
    session.set_system_prompt("new")

    export(session, name, tmp_path / "out.json")

    assert taken_in(store, tmp_path / "out.json").view().system_prompt == "new"
    assert b"old" not in (tmp_path / "out.json").read_bytes()


def test_what_was_taken_back_since_does_not_go_out(store: SessionStore, tmp_path: Path) -> None:
    session = taken_in(store, written(tmp_path / "a.json", [*CHAT, user("wrong")]))
    session.retract(session.view().entries[-1].position)

    export(session, "openai-chat", tmp_path / "out.json")

    assert json.loads((tmp_path / "out.json").read_bytes()) == CHAT


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_what_the_form_cannot_hold_is_said(name: str, store: SessionStore, tmp_path: Path) -> None:
    session = store.session("s")
    image = Media(type="image", mime="image/tiff", data=b"II*")
    session.append(Block(kind=Kind.IMAGE, media=image), Block.thinking("hm"))
    session.append(ToolCall(tool_call_id="c", name="look"))
    session.append(ToolResult(tool_call_id="c", content="no", is_error=True))

    lost = export(session, name, tmp_path / "out.json").lost

    errors = {} if name == "anthropic" else {"error marks of tool results": 1}
    assert lost == {"images and documents": 1, "thinking": 1, **errors}


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES)
def test_no_value_of_any_field_stops_the_reading(path: Path, tmp_path: Path) -> None:
    raw = path.read_text()
    body = json.loads(raw if path.suffix == ".json" else raw.splitlines()[0])
    file = tmp_path / path.name
    read = 0
    for place in _places(body):
        values: tuple[Any, ...] = (None, True, 7, 1.5, "", "x", [], [[]], {}, {"type": 1}, 2**80)
        for value in values:
            source = Source(written(file, _changed(body, place, value)))
            if found := recognise(source):
                ends = [step for step in found.read(source) if isinstance(step, EntryRead)]
                assert {step.outcome for step in ends} <= {"imported", "unknown", "error"}
                read += bool(ends)

    assert read > len(_places(body))


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [at]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [at, *[place for step, one in inside for place in _places(one, (*at, step))]]


def _changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _changed(value[place[0]], place[1:], new)
    return copy

"""What each entry of a session of pi or oh-my-pi becomes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pi_talk import SESSION, Talk, imported, tool_call, usage

from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.transcripts.formats.catalog import recognise
from cutbank.adapters.transcripts.formats.pi import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Asked,
    Begin,
    Call,
    Compacted,
    EntryRead,
    Problem,
    Rewind,
    Skipped,
    Step,
    Unknown,
)
from cutbank.domain.blocks import Kind, ToolCall, ToolResult
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.ranges import Ranges
from cutbank.projections.rendering import summary_message

PIXEL = {"type": "image", "data": "AAEC", "mimeType": "image/png"}

Read = Callable[[Talk | bytes], list[Step]]


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(talk: Talk | bytes) -> list[Step]:
        path = tmp_path / "a.jsonl"
        path.write_bytes(talk if isinstance(talk, bytes) else talk.raw())
        return list(FORMAT.read(Source(path)))

    return read


def of(kind: type[Any], steps: list[Step]) -> list[Any]:
    return [step for step in steps if isinstance(step, kind)]


def blocks(steps: list[Step]) -> list[Any]:
    return [step.block for step in of(Append, steps)]


def ends(steps: list[Step]) -> list[str]:
    return [step.outcome for step in of(EntryRead, steps)]


def told(steps: list[Step]) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in blocks(steps)]


def test_a_message_becomes_its_items_as_blocks_in_order(read: Read) -> None:
    talk = Talk()
    talk.user([{"type": "text", "text": "look"}, PIXEL])
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}
    said = talk.says(thought, "I look", tool_call("c-1", path="x"))
    talk.result("c-1", [{"type": "text", "text": "an image"}, PIXEL], isError=True)

    steps = read(talk)

    text, image, thinking, words, call, result = blocks(steps)
    assert (text.kind, text.text) == (Kind.USER, "look")
    assert image.kind is Kind.IMAGE
    assert image.media.data == b"\x00\x01\x02"
    assert text.message_id == image.message_id != None  # noqa: E711 - both have one
    assert thinking.text == "hm"
    assert json.loads(thinking.native.item)["signature"] == "c2ln"
    assert thinking.native.provider == "anthropic"
    assert words.text == "I look"
    assert isinstance(call, ToolCall)
    assert (call.tool_call_id, call.name, call.parsed()) == ("c-1", "read", {"path": "x"})
    assert {thinking.message_id, words.message_id, call.message_id} == {said}
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert result.text == "an image"
    assert result.media[0].data == b"\x00\x01\x02"
    assert ends(steps) == ["imported"] * 4


def test_the_rest_of_an_entry_does_not_repeat_what_its_blocks_hold(read: Read) -> None:
    talk = Talk()
    talk.user([{"type": "text", "text": "WORDS"}, {**PIXEL, "data": "QUJDREVGRw=="}])
    talk.says(tool_call("c-1", path="ARGUMENT"), {"type": "thinking", "thinking": "THOUGHT"})
    talk.result("c-1", "RESULT")
    ran = {"exitCode": 0, "cancelled": False, "truncated": False}
    talk.message("bashExecution", command="ls", output="OUTPUT", **ran)
    talk.add("branch_summary", fromId="x", summary="SUMMARY")

    rests = "".join(block.origin.entry or "" for block in blocks(read(talk)) if block.origin)

    for held in ("WORDS", "QUJD", "ARGUMENT", "THOUGHT", "RESULT", "OUTPUT", "SUMMARY"):
        assert held not in rests


def test_a_call_tells_its_model_tokens_cost_and_end(read: Read) -> None:
    talk = Talk()
    said = talk.says("hi", responseId="r-1", usage=usage(reasoning=2), duration=1500)

    (call,) = of(Call, read(talk))

    told = call.fields["usage"]
    assert call.before == said
    assert (call.fields["call_id"], call.fields["model"]) == ("r-1", "m-1")
    assert (told.input, told.cache_read, told.cache_write) == (3, 20, 100)
    assert (told.output, told.reasoning) == (7, 2)
    assert (call.fields["cost_usd"], call.fields["latency_s"]) == (0.3, 1.5)
    assert call.fields["stop_reason"] == "stop"


def test_a_reasoning_item_of_openai_goes_back_byte_for_byte(read: Read) -> None:
    item = '{"type": "reasoning",  "id": "rs_1", "encrypted_content": "x"}'
    talk = Talk()
    talk.says(
        {"type": "thinking", "thinking": "hm", "thinkingSignature": item}, api="openai-responses"
    )

    (block,) = blocks(read(talk))

    assert (block.native.provider, block.native.item) == ("openai-responses", item)


def test_only_a_person_s_words_are_a_user_s(read: Read) -> None:
    talk = Talk()
    talk.message("user", content="the task", attribution="agent")
    talk.message("user", content="a hint", attribution="agent")
    talk.message("user", content="a prompt", attribution="user")
    talk.message("developer", content="a rule")
    talk.message("custom", customType="hook", content="added", display=False)
    talk.add("custom_message", customType="hook", content=[{"type": "text", "text": "more"}])
    talk.message("bashExecution", command="ls", output="a\n", exitCode=1)

    kinds = [(block.kind, block.text) for block in blocks(read(talk))]

    assert kinds == [
        (Kind.USER, "the task"),
        (Kind.DEVELOPER, "a hint"),
        (Kind.USER, "a prompt"),
        (Kind.DEVELOPER, "a rule"),
        (Kind.DEVELOPER, "added"),
        (Kind.DEVELOPER, "more"),
        (Kind.DEVELOPER, "Ran `ls`\n```\na\n\n```\n\nIt ended with exit code 1."),
    ]


def test_what_was_run_outside_the_context_is_kept_raw(read: Read) -> None:
    talk = Talk()
    talk.message("bashExecution", command="env", output="KEY=1", excludeFromContext=True)

    steps = read(talk)

    assert blocks(steps) == []
    assert [aside.type for aside in of(Aside, steps)] == ["session", "message/bashExecution"]


def test_a_model_change_and_a_session_init_say_what_is_asked(read: Read) -> None:
    talk = Talk()
    talk.add("model_change", provider="anthropic", modelId="m-1")
    talk.add("model_change", model="openrouter/maker/m-2")
    talk.add("model_change", model="openai/small", role="smol")
    talk.add("session_init", systemPrompt=["You look.", "Be quick."], task="t", tools=["read"])

    asked = of(Asked, read(talk))

    assert [one.settings for one in asked] == [{"model": "m-1"}, {"model": "maker/m-2"}, None]
    assert asked[2].system_prompt == "You look.\n\nBe quick."


@pytest.mark.parametrize(
    ("fields", "kept", "partial"),
    [
        ({"firstKeptEntryId": "00000002"}, ("00000002", "00000003"), False),
        ({"firstKeptEntryId": "00000001"}, ("00000001", "00000002", "00000003"), False),
        ({"firstKeptEntryId": "00000004"}, (), False),  # the compaction itself
        ({"firstKeptEntryId": "ffffffff"}, (), True),
        ({}, (), False),
        ({"retainedTail": []}, (), False),
        ({"retainedTail": [{"role": "user", "content": "c"}]}, ("00000003",), False),
        ({"retainedTail": [{"role": "user", "content": "never said"}]}, (), True),
    ],
)
def test_a_compaction_keeps_what_its_entry_says(
    read: Read, fields: dict[str, Any], kept: tuple[str, ...], partial: bool
) -> None:
    talk = Talk()
    for content in "abc":
        talk.message("user", content=content)
    talk.compacts("in short", tokensAfter=12, **fields)

    (compacted,) = of(Compacted, read(talk))

    assert compacted.kept == kept
    assert (compacted.partial is not None) == partial
    assert (compacted.summary, compacted.trigger) == ("in short", Trigger.THRESHOLD)
    assert (compacted.pre_tokens, compacted.post_tokens) == (900, 12)


def test_in_a_list_a_compaction_keeps_by_place_and_the_header_has_one(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = Talk(version=None)
    for content in "abcd":
        talk.message("user", content=content)
    talk.compacts("in short", firstKeptEntryIndex=3)
    talk.message("user", content="e")

    imported(store, talk.write(tmp_path / "a.jsonl"))

    view = store.session(SESSION).view()
    assert view.summary
    assert view.summary.text == "in short"
    assert [entry.block.text for entry in view.entries] == ["c", "d", "e"]


def test_a_summary_that_a_user_pastes_stays_the_users_words(
    store: SessionStore, tmp_path: Path
) -> None:
    pasted = summary_message.wrapped("drop it all", Ranges.span(1, 9))
    talk = Talk()
    talk.user("go")
    talk.user(pasted)

    imported(store, talk.write(tmp_path / "a.jsonl"))

    view = store.session(SESSION).view()
    assert view.summary is None
    assert [(entry.block.kind, entry.block.text) for entry in view.entries] == [
        (Kind.USER, "go"),
        (Kind.USER, pasted),
    ]


def test_a_cleared_context_begins_anew(store: SessionStore, tmp_path: Path) -> None:
    talk = Talk()
    talk.user("before")
    old = talk.says("yes")
    talk.add("reset_boundary")
    talk.user("after")
    talk.user("beside", old)

    report = imported(store, talk.write(tmp_path / "a.jsonl"))

    home, branch = (store.session(key).view() for key in report.sessions)
    assert [entry.block.text for entry in home.entries] == ["after"]
    assert [entry.block.text for entry in branch.entries] == ["before", "yes", "beside"]


def test_a_branch_may_begin_with_a_cleared_context(store: SessionStore, tmp_path: Path) -> None:
    talk = Talk()
    first = talk.user("before")
    talk.says("yes")
    talk.add("reset_boundary", parentId=first)
    talk.user("after")

    report = imported(store, talk.write(tmp_path / "a.jsonl"))

    views = [store.session(key).view() for key in report.sessions]
    assert [[entry.block.text for entry in view.entries] for view in views] == [
        ["before", "yes"],
        ["after"],
    ]
    assert verify(store).ok


def test_a_session_is_called_what_it_was_called_last(store: SessionStore, tmp_path: Path) -> None:
    talk = Talk()
    talk.add("session_info", name="first")
    talk.user("hi")
    talk.add("session_info", name="last")

    imported(store, talk.write(tmp_path / "a.jsonl"))

    assert store.session(SESSION).title == "last"


def test_an_entry_that_comes_twice_is_taken_once(read: Read) -> None:
    talk = Talk()
    talk.user("one")
    talk.entries += [dict(talk.entries[-1]), {**talk.entries[-1], "message": {"role": "user"}}]

    steps = read(talk)

    assert ends(steps) == ["imported", "imported", "skipped", "error"]
    assert [step.reason for step in of(Skipped, steps)] == ["repeated id"]
    assert "another entry has the id" in of(Problem, steps)[0].reason


def test_what_is_not_known_is_kept_raw_and_may_be_followed(read: Read) -> None:
    talk = Talk()
    talk.user("one")
    talk.add("hologram", data=1)
    talk.message("oracle", content="said")
    talk.user("two")

    steps = read(talk)

    assert [(step.type, step.line) for step in of(Unknown, steps)] == [
        ("hologram", 3),
        ("message/oracle", 4),
    ]
    assert len(of(Begin, steps)) == 1
    assert told(steps) == [("user", "one"), ("user", "two")]


def test_an_item_that_cannot_be_read_does_not_lose_the_others(read: Read) -> None:
    talk = Talk()
    talk.says("one", {"type": "hologram"}, {"type": "text"}, 7, "two")

    steps = read(talk)

    assert told(steps) == [("assistant", "one"), ("assistant", "two")]
    assert [step.reason for step in of(Problem, steps)] == [
        "message.content[1]: type: 'hologram' is not known",
        "message.content[2]: text: expected text, but it is missing",
        "message.content[3]: expected an object, got a whole number",
    ]
    assert ends(steps) == ["imported", "error"]


def test_a_missing_parent_is_reported_and_the_session_goes_on(read: Read) -> None:
    talk = Talk()
    talk.user("one")
    talk.user("two", parent="ffffffff")
    talk.user("three")

    steps = read(talk)

    assert [begin.key for begin in of(Begin, steps)] == [SESSION]
    assert of(Problem, steps)[0].line == 3
    assert told(steps) == [("user", "one"), ("user", "two"), ("user", "three")]


def test_branches_that_leave_one_another_without_end_are_refused(read: Read) -> None:
    talk = Talk()
    at = talk.user("begin")
    talk.says("on")
    for _ in range(2_000):
        at = talk.user("branch", at)
        talk.says("on")

    steps = read(talk)

    assert len({begin.key for begin in of(Begin, steps)}) == 201
    assert "more than 200 branches" in of(Problem, steps)[0].reason
    assert len(ends(steps)) == len(talk.entries)


def test_a_reset_takes_back_what_precedes_it(read: Read) -> None:
    talk = Talk()
    talk.user("one")
    talk.add("reset_boundary")

    (rewind,) = of(Rewind, read(talk))

    assert rewind.to is None


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([{"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}], "pi"),
        ([{"type": "title", "v": 1, "title": ""}, {"type": "session"}], None),
        (
            [
                {"type": "title", "v": 1, "title": "", "pad": ""},
                {"type": "session", "version": 3, "id": "s", "timestamp": "t"},
            ],
            "oh-my-pi",
        ),
        ([{"type": "session", "id": "s", "timestamp": "t", "title": "x"}], "oh-my-pi"),
        (
            [
                {"type": "session", "id": "s", "timestamp": "t"},
                {"type": "model_change", "model": "a/b"},
            ],
            "oh-my-pi",
        ),
        ([{"type": "message", "id": "1"}, {"type": "session", "id": "s", "timestamp": "t"}], None),
        ([{"type": "session", "id": 7, "timestamp": "t"}], None),
    ],
)
def test_a_session_is_told_by_its_first_lines(
    tmp_path: Path, lines: list[Any], name: str | None
) -> None:
    path = tmp_path / "session.txt"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    found = recognise(Source(path))

    assert (found.name if found else None) == name

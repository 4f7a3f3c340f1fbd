"""What was said and called in a transcript of Claude Code, one rule a test."""

import base64
import json
from typing import Any

import pytest
from claude_code_talk import SESSION, Entry, Talk, Tell, text, tool_use

from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Asked,
    Begin,
    Call,
    Linked,
    Problem,
    Skipped,
    Unknown,
)
from cutbank.domain.blocks import Block, Kind, Media, NativePart, Text, ToolResult

# Who said what


def test_a_prompt_an_answer_a_call_and_its_result(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("I look"))
    talk.calls("m1", "t1")
    talk.result("t1", "a.txt")

    reading = tell(talk)

    assert reading.said == [
        ("user", "go"),
        ("assistant", "I look"),
        ("tool_call", '{"command":"ls"}'),
        ("tool_result", "a.txt"),
    ]
    assert [block.message_id for block in reading.blocks] == [None, "m1", "m1", None]
    assert reading.outcomes == ["imported"] * 4


def test_a_session_begins_once_under_its_own_id(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"))

    assert tell(talk).of(Begin) == [Begin(SESSION)]
    assert tell(talk, "copy.jsonl").of(Begin) == [Begin(SESSION)]


def test_a_resumed_file_is_one_session_under_the_name_of_the_file(tell: Tell) -> None:
    talk = Talk()
    talk.user("go", sessionId="99999999-2222-3333-4444-555555555555")
    talk.user("on")

    assert tell(talk).of(Begin) == [Begin(SESSION)]


def test_keys_and_origins_are_those_of_the_source(tell: Tell) -> None:
    talk = Talk()
    talk.user([text("one"), text("two")], gitBranch="main", toolUseResult={"long": "copy"})

    first, second = tell(talk).of(Append)

    assert (first.key, second.key, first.source_id) == ("u1:0", "u1:1", "u1")
    assert first.block.origin
    assert first.block.origin.format == "claude-code"
    assert first.block.origin.id == "u1"
    assert first.block.origin.time == "2026-01-01T00:00:00.000Z"
    rest = json.loads(first.block.origin.entry or "")
    assert rest["gitBranch"] == "main"
    assert rest["message"] == {"role": "user", "content": []}
    assert "toolUseResult" not in rest
    assert second.block.origin
    assert second.block.origin.entry is None


def test_an_entry_without_an_id_is_known_by_its_line(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    del talk.entries[0]["uuid"]

    (append,) = tell(talk).of(Append)

    assert append.key.startswith("line:")
    assert tell(talk).of(Append) == [append]


@pytest.mark.parametrize(
    "fields",
    [
        {"isMeta": True},
        {"origin": {"kind": "task-notification"}},
    ],
)
def test_what_the_harness_says_in_the_users_name_is_no_users_word(
    tell: Tell, fields: Entry
) -> None:
    talk = Talk()
    talk.user("psst", **fields)

    assert tell(talk).said == [("developer", "psst")]


def test_output_of_a_local_command_is_no_users_word(tell: Tell) -> None:
    talk = Talk()
    talk.user("<command-name>/model</command-name>", origin={"kind": "human"})
    talk.user("<local-command-stdout>Set model</local-command-stdout>")
    talk.add("system", subtype="local_command", content="<local-command-stdout>ok")

    assert [kind for kind, _ in tell(talk).said] == ["user", "developer", "developer"]


def test_images_and_documents_come_as_bytes(tell: Tell) -> None:
    png = b"\x89PNG"
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png).decode()}
    talk = Talk()
    talk.user(
        [
            {"type": "image", "source": source},
            {"type": "document", "title": "a", "source": {"type": "text", "data": "words"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "image", "source": {"type": "file", "file_id": "f1"}},
            {"type": "image", "source": source | {"data": "&&&"}},
        ]
    )

    reading = tell(talk)

    image, document, linked, uploaded = reading.blocks
    assert isinstance(image, Block)
    assert image.media == Media(type="image", mime="image/png", data=png)
    assert isinstance(document, Block)
    assert document.media == Media(type="document", mime="text/plain", data=b"words", name="a")
    assert isinstance(linked, Block)
    assert linked.media
    assert linked.media.url == "https://example.org/a.png"
    assert uploaded.native
    assert "not base64" in reading.reasons[0]


def test_a_result_keeps_its_parts_in_order(tell: Tell) -> None:
    reference = {"type": "tool_reference", "tool_name": "Grep"}
    talk = Talk()
    talk.calls("m1", "t1")
    talk.user(
        [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "is_error": True,
                "content": [text("found"), reference],
            }
        ]
    )

    result = tell(talk).blocks[-1]

    assert isinstance(result, ToolResult)
    assert result.is_error
    assert isinstance(result.content, tuple)
    found, native = result.content
    assert found == Text(text="found")
    assert isinstance(native, NativePart)
    assert native.native.provider == "anthropic"
    assert json.loads(native.native.item) == reference


def test_thinking_keeps_its_signature(tell: Tell) -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": "c2ln+/=="}
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    talk = Talk()
    talk.says("m1", thinking, hidden)

    reading = tell(talk)

    assert [block.kind for block in reading.blocks] == [Kind.THINKING] * 2
    assert [json.loads(block.native.item) for block in reading.blocks if block.native] == [
        thinking,
        hidden,
    ]


def test_tools_that_the_provider_ran_go_back_as_they_came(tell: Tell) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    talk = Talk()
    talk.says("m1", search, found, {"type": "fallback", "from": {}})

    reading = tell(talk)

    assert [block.native and json.loads(block.native.item) for block in reading.blocks] == [
        search,
        found,
    ]
    assert [(step.type, json.loads(step.raw)) for step in reading.of(Unknown)] == [
        ("assistant/fallback", {"type": "fallback", "from": {}})
    ]
    assert reading.outcomes == ["unknown"]


def test_words_that_no_model_wrote_are_no_answer_and_no_call(tell: Tell) -> None:
    talk = Talk()
    talk.says("m1", text("API Error: 529"), isApiErrorMessage=True)
    talk.entries[0]["message"]["model"] = "<synthetic>"

    reading = tell(talk)

    assert reading.said == [("note", "API Error: 529")]
    assert not reading.of(Call)


def test_empty_content_says_nothing_and_is_kept_as_it_stands(tell: Tell) -> None:
    talk = Talk()
    talk.user("")
    talk.user([])
    talk.says("m1", text(""))

    reading = tell(talk)

    assert not reading.blocks
    assert reading.outcomes == ["imported"] * 3
    assert [json.loads(step.raw) for step in reading.of(Aside)] == talk.entries


# Calls of the model


def test_a_message_on_several_lines_is_one_call_with_its_largest_output(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    first = talk.says("m1", text("I look"), output=1)
    talk.calls("m1", "t1", output=337)
    talk.result("t1")
    talk.calls("m1", "t2", output=1)
    talk.result("t2")
    talk.entries[-2]["message"]["stop_reason"] = "tool_use"
    talk.says("m2", text("done"), output=9)

    reading = tell(talk)

    call, last = reading.of(Call)
    assert call.before == first
    assert call.key == "call:m1:337"
    usage = call.fields.pop("usage")
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (3, 20, 100, 337)
    assert call.fields == {
        "call_id": "m1",
        "model": "m-1",
        "stop_reason": "tool_use",
        "source_time": "2026-01-01T00:00:01.000Z",
    }
    assert last.key == "call:m2:9"
    kinds = [type(step) for step in reading.steps if isinstance(step, Append | Call)]
    assert kinds == [Append] * 6 + [Call, Append, Call]


def test_a_message_that_grows_is_reported_under_another_key(tell: Tell) -> None:
    talk = Talk()
    talk.says("m1", text("I look"), output=1)
    (early,) = tell(talk).of(Call)
    talk.calls("m1", "t1", output=50)

    (late,) = tell(talk).of(Call)

    assert (early.key, late.key) == ("call:m1:1", "call:m1:50")
    assert tell(talk).of(Call) == [late]


def test_a_usage_of_a_wrong_type_costs_only_itself(tell: Tell) -> None:
    talk = Talk()
    talk.says("m1", text("fine"))
    talk.entries[0]["message"]["usage"]["output_tokens"] = "many"

    reading = tell(talk)

    assert reading.said == [("assistant", "fine")]
    assert reading.reasons == ["message.usage.output_tokens: expected a whole number, got text"]
    assert reading.outcomes == ["error"]


# Calls of tools


def test_a_result_that_answers_no_open_call_is_a_problem_and_is_kept(tell: Tell) -> None:
    talk = Talk()
    talk.calls("m1", "t1")
    talk.result("t1")
    talk.result("t1", "again")
    talk.result("t9")

    reading = tell(talk)

    assert len(reading.blocks) == 2
    assert reading.outcomes == ["imported", "imported", "error", "error"]
    again, never = reading.of(Problem)
    assert again.line == 3
    assert again.reason == "message.content[0]: tool_use_id: t1 answers no open call"
    assert json.loads(again.raw or "") == talk.entries[2]
    assert again.key != never.key


def test_a_call_that_is_open_is_not_opened_again(tell: Tell) -> None:
    talk = Talk()
    talk.calls("m1", "t1")
    talk.calls("m1", "t1")
    talk.result("t1")
    talk.calls("m2", "t1")

    reading = tell(talk)

    assert reading.outcomes == ["imported", "error", "imported", "imported"]
    assert "already open" in reading.reasons[0]


def test_progress_of_a_sub_agent_is_not_read_as_its_calls(tell: Tell) -> None:
    talk = Talk()
    talk.calls("m1", "t1")
    nested = {"type": "assistant", "message": {"id": "m8", "content": [tool_use("t8")]}}
    talk.add("progress", data={"type": "agent_progress", "message": nested})
    talk.result("t1")

    reading = tell(talk)

    assert len(reading.blocks) == 2
    assert reading.of(Skipped) == [Skipped("progress", "shown while a tool ran")]


# Sub-agents


def test_a_sub_agents_file_is_a_session_of_its_own(tell: Tell) -> None:
    talk = Talk()
    talk.user("look around", isSidechain=True, agentId="a1")
    talk.says("m1", text("nice here"), isSidechain=True, agentId="a1")

    reading = tell(talk, "agent-a1.jsonl")

    assert reading.of(Begin) == [Begin(f"{SESSION}/agent-a1", parent_key=SESSION)]
    assert len(reading.blocks) == 2


def test_the_result_of_a_call_links_it_to_its_sub_agent(tell: Tell) -> None:
    talk = Talk()
    talk.calls("m1", "t1")
    talk.result("t1", "report", toolUseResult={"agentId": "a1", "status": "completed"})

    assert tell(talk).of(Linked) == [Linked(f"{SESSION}/agent-a1", SESSION, "t1")]


def test_sub_agents_inside_a_file_are_parted_by_their_parents(tell: Tell) -> None:
    talk = Talk()
    talk.says("m1", tool_use("t1", name="Task", input={"prompt": "count"}))
    talk.says("m1", tool_use("t2", name="Task", input={"prompt": "list"}))
    last = talk.last
    one = talk.user("count", isSidechain=True, parentUuid=None)
    two = talk.user("list", isSidechain=True, parentUuid=None)
    talk.says("m2", text("three"), isSidechain=True, parentUuid=one)
    talk.says("m3", text("a, b"), isSidechain=True, parentUuid=two)
    talk.last = last
    talk.result("t1", "three")

    reading = tell(talk)

    sessions: dict[str, list[str]] = {}
    current = ""
    for step in reading.steps:
        match step:
            case Begin(key=key):
                current = key
            case Append(block=block):
                sessions.setdefault(current, []).append(block.text)
            case _:
                pass
    assert sessions[f"{SESSION}/sidechain-{one}"] == ["count", "three"]
    assert sessions[f"{SESSION}/sidechain-{two}"] == ["list", "a, b"]
    assert sessions[SESSION][-1] == "three"
    begin = next(begin for begin in reading.of(Begin) if begin.key.endswith(two))
    assert (begin.parent_key, begin.parent_call) == (SESSION, "t2")


# Titles


def test_a_title_is_told_when_it_changes_and_a_persons_title_stays(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.entries += [
        {"type": "ai-title", "aiTitle": "Going", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Going", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": "Mine", "sessionId": SESSION},
        {"type": "ai-title", "aiTitle": "Gone", "sessionId": SESSION},
    ]

    reading = tell(talk)

    assert [begin.title for begin in reading.of(Begin)] == [None, "Going", "Mine"]
    assert [json.loads(step.raw) for step in reading.of(Aside)] == talk.entries[1:]
    assert len({step.key for step in reading.of(Aside)}) == 4


# Requests


def shape(name: str, system: Any, tools: list[Entry]) -> Entry:
    told = {"system": system, "tools": tools}
    return {"type": "api-request-shape", "sessionId": SESSION, "shapeHash": name, "shape": told}


def request(name: str, **fields: Any) -> Entry:
    said = {"type": "api-request", "sessionId": SESSION, "id": "r", "shapeHash": name}
    return said | {"querySource": "repl_main_thread"} | fields


def test_what_requests_hold_is_asked_where_it_changes(tell: Tell) -> None:
    tools = [{"name": "Bash"}]
    talk = Talk()
    talk.user("go")
    talk.entries += [
        shape("s1", [text("You are"), text("brief.")], tools),
        request("s1", params={"model": "m-1"}, id="r1"),
        request("s1", params={"model": "m-1"}, id="r2"),
        request("s2", querySource="compact"),
        request("s2", id="r3"),
        shape("s2", "You are long.", []),
        request("s1", params={"model": "m-1"}, id="r4", agentId="a1"),
    ]

    reading = tell(talk)

    assert [(asked.system_prompt, asked.tools, asked.settings) for asked in reading.of(Asked)] == [
        ("You are\n\nbrief.", tools, {"model": "m-1"}),
        ("You are long.", [], None),
    ]
    imported = [index for index, one in enumerate(reading.outcomes) if one == "imported"]
    assert imported == [0, 2, 6]
    assert set(reading.outcomes) == {"imported", "skipped"}


def test_an_audit_of_wrong_types_is_a_problem(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.entries += [shape("s1", 7, []) | {"shape": []}, shape("s2", 7, []), request("s2")]

    reading = tell(talk)

    assert reading.outcomes == ["imported", "error", "skipped", "imported"]
    assert [asked.system_prompt for asked in reading.of(Asked)] == [None]

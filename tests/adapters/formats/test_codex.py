"""Rollouts of Codex become sessions: every item a block, every count a call, nothing twice."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading
from codex_talk import PARENT, THREAD, Rollout, read_at

from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Asked,
    Begin,
    Call,
    Linked,
    Skipped,
)
from cutbank.domain.blocks import Block, Kind, ToolCall, ToolResult

PIXEL = b"\x89PNG pixel"
PIXEL_URL = f"data:image/png;base64,{b64encode(PIXEL).decode()}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rollout.jsonl"


def only(reading: Reading) -> Any:
    (block,) = reading.blocks
    return block


def test_the_thread_of_the_first_line_is_the_session(path: Path) -> None:
    told = Rollout(base_instructions={"text": "Be brief."})

    reading = read_at(path, told)

    assert reading.of(Begin) == [Begin(THREAD, project="/here")]
    assert [step.system_prompt for step in reading.of(Asked)] == ["Be brief."]
    assert [step.type for step in reading.of(Aside)] == ["session_meta"]


def test_instructions_are_asked_for_again_only_where_they_changed(path: Path) -> None:
    told = Rollout(base_instructions={"text": "Be brief."})
    told.add("session_meta", {"id": THREAD, "base_instructions": {"text": "Be brief."}})
    told.add("session_meta", {"id": THREAD, "base_instructions": {"text": "Be long."}})

    reading = read_at(path, told)

    assert [step.system_prompt for step in reading.of(Asked)] == ["Be brief.", "Be long."]


def test_what_a_person_said_is_told_from_what_was_put_into_the_same_role(path: Path) -> None:
    told = Rollout()
    told.user("# AGENTS.md instructions for /here\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>")
    told.user("<environment_context>\n  <cwd>/here</cwd>\n</environment_context>")
    told.user("<turn_aborted>\nx\n</turn_aborted>")
    told.user("<environment_context> is a tag that I do not know")
    told.user("# AGENTS.mdx is missing")
    told.developer("Speak plainly.")

    said = read_at(path, told).said

    assert [kind for kind, _ in said] == [*["developer"] * 3, "user", "user", "developer"]


def test_parts_of_a_users_message_are_one_message_and_its_image_is_bytes(path: Path) -> None:
    told = Rollout()
    told.user("Look:", {"type": "input_image", "image_url": PIXEL_URL, "detail": "low"})

    text, image = read_at(path, told).blocks

    assert isinstance(image, Block)
    assert image.kind is Kind.IMAGE
    assert image.media
    assert (image.media.mime, image.media.data) == ("image/png", PIXEL)
    assert text.message_id == image.message_id
    assert text.message_id is not None
    assert text.origin
    assert text.origin.entry
    assert PIXEL_URL not in text.origin.entry
    assert "Look:" not in text.origin.entry


def test_an_image_at_an_address_or_in_other_base64_keeps_its_address(path: Path) -> None:
    told = Rollout()
    addresses = ["https://example.org/a.png", "data:image/png;base64,%%%", f"{PIXEL_URL}\n"]
    told.user(*[{"type": "input_image", "image_url": address} for address in addresses])

    blocks = read_at(path, told).blocks

    assert [isinstance(one, Block) and one.media and one.media.url for one in blocks] == addresses


def test_a_call_keeps_its_arguments_as_they_came_and_its_result_answers_it(path: Path) -> None:
    told = Rollout()
    told.calls("c1", arguments='{"a":  1e3}', name="read")
    told.returns("c1", "text")

    call, result = read_at(path, told).blocks

    assert isinstance(call, ToolCall)
    assert (call.tool_call_id, call.name, call.arguments) == ("c1", "read", '{"a":  1e3}')
    assert isinstance(result, ToolResult)
    assert (result.tool_call_id, result.content, result.is_error) == ("c1", "text", False)


def test_what_no_json_was_given_to_a_tool_becomes_its_input_and_goes_back_as_it_came(
    path: Path,
) -> None:
    told = Rollout()
    told.item("custom_tool_call", call_id="c", name="apply_patch", input='a "patch"\n', id="ctc_1")
    told.item("custom_tool_call_output", call_id="c", output="ok")

    call, result = read_at(path, told).blocks

    assert isinstance(call, ToolCall)
    assert call.parsed() == {"input": 'a "patch"\n'}
    assert call.native
    assert '"type":"custom_tool_call"' in call.native.item
    assert result.text == "ok"


def test_the_parts_of_a_result_stay_in_their_order(path: Path) -> None:
    told = Rollout()
    told.calls("c")
    told.returns(
        "c",
        [
            {"type": "input_text", "text": "one"},
            {"type": "input_image", "image_url": PIXEL_URL},
            {"type": "input_sound", "sound": "moo"},
        ],
    )

    result = read_at(path, told).blocks[1]

    assert isinstance(result, ToolResult)
    assert [part.type for part in result.content if not isinstance(part, str)] == [
        *("text", "image", "native")
    ]
    assert result.media[0].data == PIXEL


def test_older_results_say_whether_they_are_errors(path: Path) -> None:
    told = Rollout()
    told.calls("c")
    told.returns("c", {"content": "no such file", "success": False})

    result = read_at(path, told).blocks[1]

    assert isinstance(result, ToolResult)
    assert (result.text, result.is_error) == ("no such file", True)


def test_what_ran_in_a_local_shell_is_a_call_even_where_it_has_no_id(path: Path) -> None:
    told = Rollout()
    told.item("local_shell_call", call_id="s", status="completed", action={"command": ["ls"]})
    line = told.item("local_shell_call", call_id=None, status="completed", action={})

    named, nameless = read_at(path, told).blocks

    assert isinstance(named, ToolCall)
    assert isinstance(nameless, ToolCall)
    assert (named.name, named.tool_call_id) == ("local_shell", "s")
    assert named.parsed() == {"command": ["ls"]}
    assert nameless.tool_call_id == f"local_shell:{line}"


def test_a_call_that_the_provider_answers_itself_counts_and_goes_back_as_it_came(
    path: Path,
) -> None:
    told = Rollout()
    told.item("web_search_call", id="ws", status="completed", action={"type": "search"})

    reading = read_at(path, told)

    assert [step.served for step in reading.of(Append)] == [True]
    assert only(reading).native.provider == "openai-responses"
    assert only(reading).kind is Kind.ASSISTANT


def test_a_search_for_tools_is_a_call_where_codex_itself_answers_it(path: Path) -> None:
    told = Rollout()
    told.item("tool_search_call", call_id="t", execution="client", arguments={"query": "x"})
    told.item("tool_search_output", call_id="t", execution="client", tools=[{"name": "x"}])
    told.item("tool_search_call", call_id=None, execution="server", arguments={})

    reading = read_at(path, told)

    assert [block.kind for block in reading.blocks] == [
        *(Kind.TOOL_CALL, Kind.TOOL_RESULT, Kind.ASSISTANT)
    ]
    assert [step.served for step in reading.of(Append)] == [False, False, True]


def test_a_generated_image_is_an_artifact_of_bytes(path: Path) -> None:
    told = Rollout()
    told.item("image_generation_call", id="ig", result=b64encode(PIXEL).decode())

    block = only(read_at(path, told))

    assert block.kind is Kind.ARTIFACT
    assert block.media.data == PIXEL
    assert b64encode(PIXEL).decode() not in block.origin.entry


def test_reasoning_goes_back_as_it_came_without_what_codex_noted_on_it(path: Path) -> None:
    told = Rollout()
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    noted = {"internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    told.item("reasoning", id="rs", summary=summary, encrypted_content="gAAA", **noted)
    told.item("reasoning", summary=[], content=None)

    reading = read_at(path, told)

    assert only(reading).text == "one\n\ntwo"
    assert "gAAA" in only(reading).native.item
    assert "turn_id" not in only(reading).native.item
    assert "turn_id" in only(reading).origin.entry
    assert [step.type for step in reading.of(Aside)] == ["session_meta", "reasoning"]


def test_what_other_agents_say_is_nobodys_prompt(path: Path) -> None:
    told = Rollout()
    text = {"type": "input_text", "text": "found it"}
    told.item("agent_message", author="/crew/a", recipient="/crew", content=[text])
    told.item("agent_message", author="/crew/a", content=[{"type": "encrypted_content"}])
    told.add("inter_agent_communication", {"author": "/crew/b", "content": "me too"})

    blocks = read_at(path, told).blocks

    assert [(block.kind, block.text) for block in blocks] == [
        (Kind.DEVELOPER, "found it"),
        (Kind.DEVELOPER, ""),
        (Kind.DEVELOPER, "me too"),
    ]
    assert [one.name for one in blocks if isinstance(one, Block)] == [
        *("/crew/a", "/crew/a", "/crew/b")
    ]
    assert blocks[1].native


def test_events_that_say_it_again_are_skipped_with_their_reason(path: Path) -> None:
    told = Rollout()
    told.user("hello")
    told.event("user_message", message="hello")
    told.event("task_complete")

    reading = read_at(path, told)

    assert len(reading.blocks) == 1
    assert [step.reason for step in reading.of(Skipped)] == [
        "shown to the person; another line says the same",
        "state of the program",
    ]
    assert reading.outcomes == ["imported", "imported", "skipped", "skipped"]


def test_a_token_count_is_a_call_that_saw_what_precedes_its_answer(path: Path) -> None:
    told = Rollout()
    told.model("gpt-a")
    told.user("hello")
    told.model("gpt-b")
    first = told.says("one moment")
    told.calls("c")
    told.returns("c")
    line = told.counts(1_000, 800, 20)

    (call,) = read_at(path, told).of(Call)

    assert call.before == f"line:{first}"
    assert call.fields["model"] == "gpt-b"
    assert call.fields["call_id"] == f"token_count:{line}"
    usage = call.fields["usage"]
    assert (usage.input, usage.cache_read, usage.output) == (200, 800, 20)


def test_a_count_that_repeats_the_last_one_or_says_nothing_is_no_call(path: Path) -> None:
    told = Rollout()
    told.says("one")
    told.counts(10, 0, 5)
    told.counts(10, 0, 5, again=True)
    told.event("token_count", info=None, rate_limits={})
    told.says("two")
    told.counts(10, 0, 5)

    reading = read_at(path, told)

    assert [call.before for call in reading.of(Call)] == ["line:2", "line:6"]
    assert [step.reason for step in reading.of(Skipped)] == [
        "usage that was told before",
        "a token count without usage",
    ]


def test_a_usage_record_and_the_count_of_the_same_call_are_one_call(path: Path) -> None:
    told = Rollout()
    told.says("one")
    told.counts(10, 0, 5)
    last = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    told.add("token_usage_record", {"usage": last, "thread_token_usage": told.total})
    told.says("two")
    later = {name: count * 2 for name, count in told.total.items()}
    told.add(
        "token_usage_record",
        {"usage": last, "thread_token_usage": later, "response_id": "resp_2"},
    )
    told.event("token_count", info={"total_token_usage": later, "last_token_usage": last})

    calls = read_at(path, told).of(Call)

    assert [call.fields["call_id"] for call in calls] == ["token_count:3", "resp_2"]


def test_an_answer_that_nobody_counted_is_not_the_next_ones(path: Path) -> None:
    told = Rollout()
    told.says("broken off")
    told.user("again")
    second = told.says("done")
    told.counts(10, 0, 5)

    (call,) = read_at(path, told).of(Call)

    assert call.before == f"line:{second}"


def test_a_rollback_takes_back_the_last_turns_and_what_came_with_them(path: Path) -> None:
    told = Rollout()
    told.developer("rules")
    told.user("first")
    told.says("one")
    told.user("<environment_context>new</environment_context>")
    told.user("second")
    told.says("two")
    told.event("thread_rolled_back", num_turns=1)
    told.user("third")

    reading = read_at(path, told)

    assert reading.live == ["rules", "first", "one", "third"]
    assert "thread_rolled_back" in [step.type for step in reading.of(Aside)]


def test_a_rollback_of_more_turns_than_there_are_leaves_what_precedes_the_first(
    path: Path,
) -> None:
    told = Rollout()
    told.developer("rules")
    told.user("first")
    told.user("second")
    told.event("thread_rolled_back", num_turns=9)
    told.event("thread_rolled_back", num_turns=1)

    assert read_at(path, told).live == ["rules"]


def test_the_name_of_the_thread_is_its_title(path: Path) -> None:
    told = Rollout()
    told.event("thread_name_updated", thread_id=THREAD, thread_name="Tar")
    told.event("thread_name_updated", thread_id=PARENT, thread_name="Not this one")

    assert [step.title for step in read_at(path, told).of(Begin)] == [None, "Tar"]


@pytest.mark.parametrize(
    "meta",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
        {"source": {"subagent": "review"}, "parent_thread_id": PARENT},
    ],
)
def test_a_sub_agents_rollout_names_its_parent(path: Path, meta: dict[str, Any]) -> None:
    assert read_at(path, Rollout(**meta)).of(Begin) == [
        Begin(THREAD, parent_key=PARENT, project="/here")
    ]


def test_a_call_that_started_a_sub_agent_is_linked_to_it(path: Path) -> None:
    told = Rollout()
    told.calls("c1", name="spawn_agent")
    told.returns("c1", f'{{"agent_id":"{PARENT}","nickname":"Ada"}}')
    told.calls("c2", name="spawn_agent")
    told.returns("c2", "no agent")

    assert read_at(path, told).of(Linked) == [Linked(PARENT, THREAD, "c1")]


def test_a_child_that_begins_with_its_parents_history_holds_all_of_it(path: Path) -> None:
    told = Rollout(forked_from_id=PARENT)
    told.add("session_meta", {"id": PARENT, "base_instructions": {"text": "parent's"}})
    for line in (told.user("go on"), told.user("go on")):
        told.lines[line - 1]["timestamp"] = "2026-01-01T00:00:00.000Z"  # copied at once
    told.calls("c", name="spawn_agent")
    told.returns("c", '{"agent_id":"another"}')

    reading = read_at(path, told)

    assert [step.key for step in reading.of(Begin)] == [THREAD]
    assert reading.said[:2] == [("user", "go on"), ("user", "go on")]
    assert len({step.key for step in reading.of(Append)}) == 4
    assert reading.of(Asked) == []
    assert reading.of(Linked) == []


def test_the_oldest_rollouts_are_items_that_nothing_is_wrapped_around(path: Path) -> None:
    raw = (
        b'{"id":"old","timestamp":"2025-05-01T00:00:00Z","instructions":"Be brief."}\n'
        b'{"record_type":"state"}\n'
        b'{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}\n'
        b'{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}\n'
        b'{"type":"function_call_output","call_id":"c","output":"x"}\n'
    )

    reading = read_at(path, raw)

    assert reading.of(Begin) == [Begin("old")]
    assert [step.system_prompt for step in reading.of(Asked)] == ["Be brief."]
    assert [kind for kind, _ in reading.said] == ["user", "tool_call", "tool_result"]
    assert reading.outcomes == ["imported"] * 5


def test_a_rollout_that_does_not_say_whose_it_is_has_the_id_of_its_name(tmp_path: Path) -> None:
    told = Rollout()
    told.user("hello")
    del told.lines[0]

    reading = read_at(tmp_path / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl", told)

    assert reading.of(Begin) == [Begin(THREAD)]

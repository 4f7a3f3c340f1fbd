"""Any session is written as a rollout that Codex reads, and that says the same when imported."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from codex_talk import PARENT, THREAD, Rollout, message, read_at, sealed
from codex_written import CutAt, again, imported, items_of, lines_of
from told_elsewhere import said

from cutbank import Block, Parent, SessionStore, StoredSession, ToolCall, ToolResult, Usage, export
from cutbank.adapters.transcripts.formats.steps import SessionStart
from cutbank.domain.blocks import BlockKind, Media, Native

PIXEL = Media(type="image", mime="image/png", data=b"\x89PNG pixel")


@pytest.fixture
def session(store: SessionStore) -> StoredSession:
    return store.session(THREAD)


def written(session: StoredSession, folder: Path, **how: Any) -> Path:
    """Export the session whole, but for what was retracted; return where it lies."""
    assert export(session, "codex", folder / "out.jsonl", **how).lost.keys() <= {"retracted blocks"}
    return folder / "out.jsonl"


def test_a_users_message_of_text_and_image_is_one_message(
    session: StoredSession, tmp_path: Path
) -> None:
    image = Block(kind=BlockKind.IMAGE, media=PIXEL, message_id="m")
    session.append(Block.user("look", message_id="m"), image, Block.user("another"))

    target = written(session, tmp_path)

    assert [len(item["content"]) for item in items_of(target)] == [2, 1]


def test_the_rollout_has_all_that_codex_asks_for(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("hello"), Block.assistant("yes"))
    session.record_call(session.view(), call_id="r", model="gpt-a", usage=Usage(input=1, output=1))
    session.configure(title="Greetings")

    target = written(session, tmp_path)

    lines = lines_of(target)
    assert [line["type"] for line in lines[:3]] == ["session_meta", "turn_context", "response_item"]
    meta = lines[0]["payload"]
    assert meta["id"] == THREAD
    assert {"timestamp", "cwd", "originator", "cli_version", "source"} <= meta.keys()
    context = lines[1]["payload"]
    assert context["model"] == "gpt-a"
    assert context["sandbox_policy"] == {"type": "read-only"}
    events = [line["payload"]["type"] for line in lines if line["type"] == "event_msg"]
    assert events == ["user_message", "agent_message", "token_count", "thread_name_updated"]
    assert all(line.keys() == {"timestamp", "type", "payload"} for line in lines)


def test_a_key_that_is_no_threads_id_becomes_one(store: SessionStore, tmp_path: Path) -> None:
    child = store.session("the child", parent=Parent(namespace="default", key=PARENT))
    child.append(Block.user("hello"))

    meta = lines_of(written(child, tmp_path))[0]["payload"]

    assert str(UUID(meta["id"])) == meta["id"]
    assert meta["source"]["subagent"]["thread_spawn"]["parent_thread_id"] == PARENT


def test_reasoning_and_what_the_provider_did_itself_go_back_as_they_came(
    session: StoredSession, tmp_path: Path
) -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"}
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "1 + 1"}

    def native(item: dict[str, Any]) -> Native:
        return Native(provider="openai-responses", item=json.dumps(item))

    session.append(Block.user("hello"), Block.thinking("", native=native(reasoning)))
    session.append(Block.assistant("", native=native(search)))
    session.append(ToolCall(tool_call_id="c", name="exec", native=native(custom)))
    session.append(ToolResult(tool_call_id="c", content="2"))

    assert items_of(written(session, tmp_path))[1:] == [
        reasoning,
        search,
        custom,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "2"},
    ]


def test_ids_that_were_used_before_or_are_too_long_stay_pairs(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("hello"))
    for name in ("c", "c", "x" * 80):
        session.append(ToolCall(tool_call_id=name, name="ls"))
        session.append(ToolResult(tool_call_id=name, content="done"))

    target = written(session, tmp_path)

    called = [item["call_id"] for item in items_of(target) if item["type"] == "function_call"]
    answered = [item["call_id"] for item in items_of(target) if "output" in item]
    assert called == answered
    assert len({*called}) == 3
    assert max(map(len, called)) <= 64


def test_what_was_taken_back_and_calls_that_nobody_answered_are_not_made_up(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("first"), Block.assistant("one"))
    session.append(Block.user("second"))
    session.retract(after=session.position - 1)
    session.append(Block.user("third"), ToolCall(tool_call_id="c", name="ls"))
    session.cancel_tool_call("c", "the process died")

    target = written(session, tmp_path)

    assert [item["type"] for item in items_of(target)] == ["message"] * 3 + ["function_call"]
    assert "second" not in target.read_text()


def test_what_was_taken_back_here_is_left_out_and_what_codex_took_back_is_not(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.user("first")
    told.user("second")
    told.event("thread_rolled_back", num_turns=1)
    told.user("third")
    session = imported(store, tmp_path / "in.jsonl", told)
    session.retract(after=session.position - 1)

    target = written(session, tmp_path)

    assert [item["content"][0]["text"] for item in items_of(target)] == ["first", "second"]
    assert said(again(store, target)) == said(session)


def test_a_compaction_becomes_one_of_codex_and_a_boundary_again(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("first " * 300), Block.assistant("yes " * 300))
    session.append(Block.user("second " * 300))
    session.append(ToolCall(tool_call_id="c", name="ls"))
    session.append(ToolResult(tool_call_id="c", content="long " * 500))
    session.compact(CutAt(6, shortened=8))
    session.append(Block.assistant("third"))

    target = written(session, tmp_path)

    (compacted,) = [line["payload"] for line in lines_of(target) if line["type"] == "compacted"]
    summary, prompt, call, result = compacted["replacement_history"]
    assert summary["content"][0]["text"] == compacted["message"]
    assert prompt["content"][0]["text"] == "second " * 300
    assert (call["call_id"], result["call_id"]) == ("c", "c")
    assert len(result["output"]) < 200
    copy, before = again(store, target).view(lineage="recorded"), session.view()
    assert [entry.text for entry in copy.entries] == [entry.text for entry in before.entries]
    assert copy.summary
    assert before.summary
    assert copy.summary.text == before.summary.text
    assert copy.boundary
    assert before.boundary
    assert copy.boundary.post_tokens == before.boundary.post_tokens


def test_two_compactions_say_what_each_of_them_kept(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    for word in ("first", "second", "third"):
        session.append(Block.user(f"{word} " * 300), Block.assistant(f"{word} yes " * 300))
        session.compact(CutAt(session.position - 1))

    target = written(session, tmp_path)

    *_, last = [line["payload"] for line in lines_of(target) if line["type"] == "compacted"]
    shown = [entry.text for entry in session.view().entries]
    assert [item["content"][0]["text"] for item in last["replacement_history"][1:]] == shown
    copy = again(store, target).view(lineage="recorded")
    assert [entry.text for entry in copy.entries] == shown


def test_the_view_of_a_rollout_holds_what_its_compaction_brought(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.user("first")
    told.says("one")
    rules = [message("developer", "a", "b"), message("developer", "c", "d")]
    told.compacts(message("user", "first"), *rules, sealed())
    told.calls("c")
    told.returns("c", [{"type": "input_text", "text": "x"}])
    session = imported(store, tmp_path / "in.jsonl", told)

    target = written(session, tmp_path, view=True, lineage="recorded")

    (compacted,) = [line["payload"] for line in lines_of(target) if line["type"] == "compacted"]
    assert len(compacted["replacement_history"]) == 1
    items = items_of(target)
    assert [len(item["content"]) for item in items[:3]] == [1, 2, 2]  # what was apart stays apart
    assert [item["type"] for item in items[3:]] == [
        *("compaction", "function_call", "function_call_output")
    ]
    assert items[3] == sealed()
    assert items[5]["output"] == [{"type": "input_text", "text": "x"}]


@pytest.mark.parametrize("kind", ["function_call_output", "custom_tool_call_output"])
def test_a_result_has_the_type_that_its_rebuilt_call_requires(
    store: SessionStore, tmp_path: Path, kind: str
) -> None:
    told = Rollout()
    told.user("first")
    call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"}
    told.compacts(message("user", "first"), call)
    told.item(kind, call_id="c", output="done")
    session = imported(store, tmp_path / "in.jsonl", told)

    target = written(session, tmp_path, view=True, lineage="recorded")

    assert [item["type"] for item in items_of(target)][-2:] == [
        *("function_call", "function_call_output")
    ]


def test_a_rollout_that_does_not_say_whose_it_is_has_the_id_of_its_name(tmp_path: Path) -> None:
    told = Rollout()
    told.user("hello")
    del told.lines[0]

    reading = read_at(tmp_path / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl", told)

    assert reading.of(SessionStart) == [SessionStart(THREAD)]


def test_a_model_is_named_where_it_changes(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    for number, model in enumerate(("small", "small", "large")):
        session.append(Block.user("hello"))
        view = session.view()
        session.append(Block.assistant(f"answer {number}"))
        session.record_call(view, call_id=f"r{number}", model=model, usage=Usage(input=200))

    target = written(session, tmp_path)

    told = [line["payload"] for line in lines_of(target) if line["type"] == "turn_context"]
    assert [one["model"] for one in told] == ["large", "small", "large"]  # it begins with the last

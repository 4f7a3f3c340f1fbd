"""Any session is written as a rollout that Codex reads, and that says the same when imported."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from claude_code_talk import Talk, text, tool_use
from codex_talk import PARENT, THREAD
from codex_written import again, items_of, lines_of, said
from transcripts import SAMPLES, import_file

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import export, outgoing_of
from cutbank.adapters.transcripts.formats.outgoing import Called
from cutbank.domain.blocks import Kind, Media, Native, Origin, Text
from cutbank.domain.session_events import Parent, Usage

PIXEL = Media(type="image", mime="image/png", data=b"\x89PNG pixel")
PDF = Media(type="document", mime="application/pdf", data=b"%PDF", name="plan.pdf")


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def session(store: SessionStore) -> StoredSession:
    return store.session(THREAD)


def test_what_cutbank_recorded_says_the_same_when_imported_again(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.set_system_prompt("Be brief.")
    session.append(Block.developer("rules"), Block.user("hello"))
    session.append(
        Block.assistant("both", message_id="m"),
        ToolCall(tool_call_id="c1", name="ls", arguments='{"a":  1}', message_id="m"),
        ToolCall(tool_call_id="c2", name="ls", arguments="not json", message_id="m"),
        ToolResult(tool_call_id="c2", content="two"),
        ToolResult(tool_call_id="c1", content=(Text(text="one"), PIXEL)),
    )
    session.append(Block.assistant("\n\n"), Block.assistant("done"), Block.user("and now?"))
    target = tmp_path / "out.jsonl"

    report = export(session, "codex", target)

    copy = again(store, target)
    assert report.lost == {}
    assert said(copy) == said(session)
    assert copy.view().system_prompt == "Be brief."
    result = next(e.block for e in copy.view().entries if e.text == "one")
    assert isinstance(result, ToolResult)
    assert result.media == (PIXEL,)


def test_calls_of_models_say_the_same_when_imported_again(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    usage = Usage(input=200, cache_read=800, cache_write=50, output=20, reasoning=5)
    for number, model in enumerate(("small", "large")):
        session.append(Block.user("hello"))
        view = session.view()
        session.append(Block.assistant(f"answer {number}"))
        session.record_call(view, call_id=f"r{number}", model=model, usage=usage)
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    ledger = [(call["model"], call["input_tokens"]) for call in calls(again(store, target))]
    assert ledger == [("small", 200), ("large", 200)]


def calls(session: StoredSession) -> list[dict[str, Any]]:
    found = [part.call for part in outgoing_of(session).parts() if isinstance(part, Called)]
    return [
        {"model": call.model, "input_tokens": call.usage.input if call.usage else None}
        for call in found
    ]


def test_a_users_message_of_text_and_image_is_one_message(
    session: StoredSession, tmp_path: Path
) -> None:
    image = Block(kind=Kind.IMAGE, media=PIXEL, message_id="m")
    session.append(Block.user("look", message_id="m"), image, Block.user("another"))
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    assert [len(item["content"]) for item in items_of(target)] == [2, 1]


def test_the_rollout_has_all_that_codex_asks_for(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("hello"), Block.assistant("yes"))
    session.record_call(session.view(), call_id="r", model="gpt-a", usage=Usage(input=1, output=1))
    session.retitle("Greetings")
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

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


def test_a_key_that_is_no_threads_id_becomes_one_that_is_always_the_same(
    store: SessionStore, tmp_path: Path
) -> None:
    child = store.session("the child", parent=Parent(namespace="default", key=PARENT))
    child.append(Block.user("hello"))

    export(child, "codex", tmp_path / "1")
    export(child, "codex", tmp_path / "2")

    meta = lines_of(tmp_path / "1")[0]["payload"]
    assert str(UUID(meta["id"])) == meta["id"]
    assert meta["source"]["subagent"]["thread_spawn"]["parent_thread_id"] == PARENT
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize(
    ("block", "lost"),
    [
        (Block.thinking("hm"), "thoughts of models of other providers"),
        (Block(kind=Kind.DOCUMENT, media=PDF), "documents"),
        (Block(kind=Kind.ARTIFACT, media=PDF), "artifacts"),
        (Block.note("remember"), "notes"),
        (
            Block.note("{}", name="header", origin=Origin(format="pi")),
            "entries that only their own agent needs",
        ),
        (
            Block.assistant("", native=Native(provider="anthropic", item="{}")),
            "items that only another provider understands",
        ),
    ],
)
def test_what_a_rollout_cannot_hold_is_told(
    session: StoredSession, tmp_path: Path, block: Block, lost: str
) -> None:
    session.append(Block.user("hello"), block)

    assert export(session, "codex", tmp_path / "out.jsonl").lost == {lost: 1}


def test_marks_settings_tools_costs_and_branches_are_told_as_lost(
    session: StoredSession, tmp_path: Path
) -> None:
    session.set_tools([{"name": "ls"}])
    session.set_request_settings(temperature=0.5, model="gpt-a")
    session.append(Block.user("hello"), ToolCall(tool_call_id="c", name="a b"))
    session.append(ToolResult(tool_call_id="c", content="no", is_error=True))
    session.record_call(session.view(), call_id="r", usage=Usage(input=1), cost_usd=0.1)
    session.fork(f"{THREAD}/branch").append(Block.user("apart"))

    assert export(session, "codex", tmp_path / "out.jsonl").lost == {
        "branches": 1,
        "costs of calls": 1,
        "definitions of tools": 1,
        "marks of tool results that are errors": 1,
        "names of tools as they were": 1,
        "settings of requests": 1,
    }


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

    report = export(session, "codex", tmp_path / "out.jsonl")

    assert report.lost == {}
    assert items_of(tmp_path / "out.jsonl")[1:] == [
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
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

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
    session.rewind(session.position - 1)
    session.append(Block.user("third"), ToolCall(tool_call_id="c", name="ls"))
    session.abandon("c", "the process died")
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    assert [item["type"] for item in items_of(target)] == ["message"] * 3 + ["function_call"]
    assert "second" not in target.read_text()


def test_another_agents_session_says_the_same_as_a_rollout(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    source = tmp_path / "claude.jsonl"
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("looking"), tool_use("t1"))
    talk.calls("m1", "t2")
    talk.result("t1", "one")
    talk.result("t2", "two")
    talk.says("m2", text("done"))
    source.write_bytes(talk.raw())
    (key,) = import_file(store, source).sessions
    original = store.session(key, create=False)
    target = tmp_path / "out.jsonl"

    report = export(original, "codex", target)

    assert report.lost == {}
    assert said(again(store, target)) == said(original)


@pytest.mark.parametrize("path", sorted((SAMPLES / "codex").iterdir()), ids=lambda path: path.stem)
def test_the_same_export_twice_gives_equal_bytes(
    store: SessionStore, tmp_path: Path, path: Path
) -> None:
    (key,) = import_file(store, path).sessions
    session = store.session(key, create=False)

    for view in (False, True):
        first, second = tmp_path / f"{view}-1", tmp_path / f"{view}-2"
        export(session, "codex", first, view=view)
        export(session, "codex", second, view=view)

        assert first.read_bytes() == second.read_bytes()
        assert import_file(store, first, namespace=f"{view}").errors[1:] == []

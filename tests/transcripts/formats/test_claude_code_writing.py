"""What is written for Claude Code: legal files, for whatever a session holds."""

import io
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from claude_code_talk import Talk, text
from told_elsewhere import said
from transcripts import import_path

from cutbank import Block, CompactionOptions, SessionStore, ToolCall, ToolResult, export
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.domain.blocks import BlockKind, Media, Native, NativePart, Text
from cutbank.domain.session_events import Parent, Usage

PNG = Media(type="image", mime="image/png", data=b"\x89PNG")


def written(session: StoredSession, **how: Any) -> tuple[list[Any], dict[str, int]]:
    """The entries of the file, and what it cannot hold."""
    out = io.BytesIO()
    report = export(session, "claude-code", out, **how)
    return [json.loads(line) for line in out.getvalue().splitlines()], report.lost


def imported(store: SessionStore, entries: list[Any], tmp_path: Path) -> StoredSession:
    """The session that the entries become."""
    path = tmp_path / "again.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    (report,) = import_path(store, path, namespace="again")
    assert not report.errors
    return store.session(report.sessions[0], namespace="again", create=False)


def test_every_entry_has_what_claude_code_looks_for(store: SessionStore) -> None:
    session = store.session("ours")
    session.append(Block.developer("Be brief."))
    session.append(Block.user("Look:"), Block(kind=BlockKind.IMAGE, media=PNG, message_id="p1"))
    session.append(
        Block.assistant("I look.", message_id="m1"),
        ToolCall(tool_call_id="c1", name="ls", arguments='{"path":"."}', message_id="m1"),
        ToolCall(tool_call_id="c2", name="cat", arguments=f'{{"n":{10**30}}}', message_id="m1"),
    )
    usage = Usage(input=3, cache_read=20, cache_write=100, output=7)
    session.record_call(session.view(), call_id="m1", usage=usage, stop_reason="tool_use")
    session.append(ToolResult(tool_call_id="c2", content=(Text(text="two"), PNG)))
    session.append(ToolResult(tool_call_id="c1", content="no such file", is_error=True))
    session.append(Block.assistant("Done.", message_id="m2"))

    entries, _ = written(session)

    parents = [None, *(entry["uuid"] for entry in entries[:-1])]
    assert [entry["parentUuid"] for entry in entries] == parents
    assert len({UUID(entry["uuid"]) for entry in entries}) == len(entries)
    assert len({UUID(entry["sessionId"]) for entry in entries}) == 1
    assert entries[0]["isMeta"] is True
    answers = [entry["message"] for entry in entries if entry["type"] == "assistant"]
    assert [(one["id"], len(one["content"]), one["stop_reason"]) for one in answers] == [
        *[("m1", 1, "tool_use")] * 3,
        ("m2", 1, "end_turn"),
    ]
    assert answers[0]["usage"] == {
        "input_tokens": 3,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 20,
        "output_tokens": 7,
    }
    asked = {item["id"]: entry["uuid"] for entry in entries for item in calls(entry)}
    answered = [
        one["sourceToolAssistantUUID"] for one in entries if "sourceToolAssistantUUID" in one
    ]
    assert answered == [asked["c2"], asked["c1"]]


def calls(entry: Any) -> list[Any]:
    content = entry["message"]["content"]
    return [item for item in content if isinstance(item, dict) and item["type"] == "tool_use"]


NATIVE_CALL = {"type": "tool_use", "id": "fc|1", "name": "f", "input": {}}


def test_a_session_without_content_is_a_file_with_an_entry(store: SessionStore) -> None:
    entries, _ = written(store.session("nothing"))

    assert [entry["type"] for entry in entries] == ["mode"]


@pytest.mark.parametrize(
    "native", [None, Native(provider="anthropic", item=json.dumps(NATIVE_CALL))]
)
def test_ids_that_anthropic_refuses_and_ids_that_come_again_are_replaced(
    store: SessionStore, tmp_path: Path, native: Native | None
) -> None:
    session = store.session("s")
    session.append(Block.user("go"))
    for answer in ("one", "two"):
        session.append(ToolCall(tool_call_id="fc|1", name="f", native=native))
        session.append(ToolResult(tool_call_id="fc|1", content=answer))

    entries, _ = written(session)
    again = imported(store, entries, tmp_path)

    ids = [item["id"] for entry in entries for item in calls(entry)]
    assert len(set(ids)) == 2
    assert all(id.startswith("toolu_") for id in ids)
    assert [text for _, text, _ in said(again)] == [text for _, text, _ in said(session)]


def test_a_sub_agents_file_says_whom_it_works_for(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("s/a", parent=Parent(namespace="default", key="s"))
    session.append(Block.user("count"))

    entries, _ = written(session)
    again = imported(store, entries, tmp_path)

    assert [(entry["isSidechain"], bool(entry["agentId"])) for entry in entries] == [(True, True)]
    assert again.log.parent
    assert again.log.parent.key == entries[0]["sessionId"]


def test_a_compaction_is_a_boundary_a_summary_and_what_was_preserved(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.session("s")
    for number in range(8):
        session.append(Block.user(f"question {number} " + "word " * 50))
        session.append(Block.assistant(f"answer {number} " + "word " * 50))
    assert session.compact(
        limit=1_000, options=CompactionOptions(settings={"keep_tokens": "200"})
    ).compacted
    session.append(Block.user("on"))
    summary = session.view().summary
    assert summary

    entries, _ = written(session)
    again = imported(store, entries, tmp_path).view(lineage="recorded")

    (at,) = (i for i, entry in enumerate(entries) if entry.get("subtype") == "compact_boundary")
    assert entries[at]["parentUuid"] is None
    assert entries[at + 1]["parentUuid"] == entries[at]["uuid"]
    assert entries[at + 1]["isCompactSummary"] is True
    metadata = entries[at]["compactMetadata"]
    assert metadata["preservedMessages"]["anchorUuid"] == entries[at + 1]["uuid"]
    before = {entry["uuid"] for entry in entries[:at]}
    assert set(metadata["preservedMessages"]["allUuids"]) <= before
    assert again.summary
    assert again.summary.text == summary.text
    texts = [entry.block.text for entry in session.view().entries]
    assert [entry.block.text for entry in again.entries] == texts


def test_parts_that_only_anthropic_reads_go_back_as_they_came(store: SessionStore) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    reference = {"type": "tool_reference", "tool_name": "Grep"}
    session = store.session("s")
    native = Native(provider="anthropic", item=json.dumps(thought))
    session.append(Block.user("go"))
    session.append(Block.thinking("hm", native=native, message_id="m1"))
    session.append(ToolCall(tool_call_id="t1", name="f", message_id="m1"))
    part = NativePart(native=Native(provider="anthropic", item=json.dumps(reference)))
    session.append(ToolResult(tool_call_id="t1", content=(part,)))

    entries, lost = written(session)

    assert lost == {}
    assert entries[1]["message"]["content"] == [thought]
    assert entries[3]["message"]["content"][0]["content"] == [reference]


def test_what_was_added_follows_the_last_entry_though_it_has_no_block(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("go")
    told.says("m1", text("gone"))
    last = told.add("system", subtype="turn_duration")
    session = imported(store, told.entries, tmp_path)
    session.append(Block.user("and on"))

    entries, _ = written(session)

    assert (len(entries), entries[-1]["parentUuid"]) == (len(told.entries) + 1, last)


def test_what_was_taken_back_is_left_out_and_what_followed_it_follows_what_was_before_it(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Talk()
    told.user("look")
    told.calls("m1", "c1")
    told.result("c1", "wrong")
    told.says("m2", text("I see."))
    path = tmp_path / "a.jsonl"
    path.write_bytes(told.raw())
    (report,) = import_path(store, path)
    session = store.session(report.sessions[0], create=False)
    (call,) = session.blocks(kinds=["tool_call"])
    session.retract(call.position)
    session.append(Block.user("and on"))

    entries, lost = written(session)

    assert not lost
    parents = [None, *(entry["uuid"] for entry in entries[:-1])]
    assert [entry["parentUuid"] for entry in entries] == parents
    again = imported(store, entries, tmp_path)
    assert [entry.block.text for entry in again.view().entries] == ["look", "I see.", "and on"]

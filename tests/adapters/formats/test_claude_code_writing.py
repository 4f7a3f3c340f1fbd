"""What is written for Claude Code: legal files, for whatever a session holds."""

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from claude_code_talk import SESSION, Talk, text

from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import export
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.sessions.stored_session import StoredSession
from cutbank.adapters.transcripts.formats.summary_mark import MARK
from cutbank.domain.blocks import AnyBlock, Kind, Media, Native, NativePart, Text
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import Parent, Usage
from cutbank.projections.rendering.summary_message import wrapped

PNG = Media(type="image", mime="image/png", data=b"\x89PNG")


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def written(session: StoredSession, **how: Any) -> tuple[list[Any], dict[str, int]]:
    """The entries of the file, and what it cannot hold."""
    out = io.BytesIO()
    report = export(session, "claude-code", out, **how)
    return [json.loads(line) for line in out.getvalue().splitlines()], report.lost


def said(session: StoredSession) -> list[tuple[str, str]]:
    return [(entry.block.kind.value, entry.block.text) for entry in session.view().entries]


def imported(store: SessionStore, entries: list[Any], tmp_path: Path) -> StoredSession:
    """The session that the entries become."""
    path = tmp_path / "again.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    (report,) = import_path(store, path, namespace="again")
    assert not report.errors
    return store.session(report.sessions[0], namespace="again", create=False)


def of_our_own(store: SessionStore, key: str = "ours") -> StoredSession:
    """A session with a little of everything that Claude Code can hold."""
    session = store.session(key)
    session.append(Block.developer("Be brief."))
    session.append(
        Block.user("Look here:", message_id="p1"),
        Block(kind=Kind.IMAGE, media=PNG, message_id="p1"),
    )
    session.append(
        Block.assistant("I look.", message_id="m1"),
        ToolCall(tool_call_id="c1", name="ls", arguments='{"path":"."}', message_id="m1"),
        ToolCall(tool_call_id="c2", name="cat", arguments=f'{{"n":{10**30}}}', message_id="m1"),
    )
    usage = Usage(input=3, cache_read=20, cache_write=100, output=7)
    session.record_call(
        session.view(), call_id="m1", model="m-1", usage=usage, stop_reason="tool_use"
    )
    session.append(ToolResult(tool_call_id="c2", content=(Text(text="two"), PNG)))
    session.append(ToolResult(tool_call_id="c1", content="no such file", is_error=True))
    session.append(Block.assistant("Done.", message_id="m2"))
    return session


def test_a_session_of_our_own_is_the_same_when_it_is_read_again(
    store: SessionStore, tmp_path: Path
) -> None:
    session = of_our_own(store)

    entries, lost = written(session)
    again = imported(store, entries, tmp_path)

    assert lost == {}
    assert said(again) == said(session)
    blocks = [entry.block for entry in again.view().entries]
    assert [block.message_id for block in blocks] == [None] * 3 + ["m1"] * 3 + [None] * 2 + ["m2"]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert [(one.tool_call_id, one.is_error) for one in results] == [("c2", False), ("c1", True)]
    assert results[0].content == (Text(text="two"), PNG)
    (image,) = (block for block in blocks if block.kind is Kind.IMAGE)
    assert isinstance(image, Block)
    assert image.media == PNG


def test_every_entry_has_what_claude_code_looks_for(store: SessionStore) -> None:
    entries, _ = written(of_our_own(store))

    assert [entry["type"] for entry in entries] == [
        *("user", "user", "assistant", "assistant", "assistant", "user", "user", "assistant")
    ]
    assert entries[0]["parentUuid"] is None
    for before, after in pairwise(entries):
        assert after["parentUuid"] == before["uuid"]
    assert len({UUID(entry["uuid"]) for entry in entries}) == len(entries)
    assert len({UUID(entry["sessionId"]) for entry in entries}) == 1
    assert entries[0]["isMeta"] is True
    answers = [entry["message"] for entry in entries if entry["type"] == "assistant"]
    assert all(len(answer["content"]) == 1 for answer in answers)
    assert [answer["id"] for answer in answers] == ["m1", "m1", "m1", "m2"]
    assert [answer["stop_reason"] for answer in answers] == ["tool_use"] * 3 + ["end_turn"]
    assert answers[0]["usage"] == {
        "input_tokens": 3,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 20,
        "output_tokens": 7,
    }
    asked = {item["id"]: entry["uuid"] for entry in entries for item in calls(entry)}
    assert [entry["sourceToolAssistantUUID"] for entry in entries[5:7]] == [
        asked["c2"],
        asked["c1"],
    ]


def calls(entry: Any) -> list[Any]:
    content = entry["message"]["content"]
    return [item for item in content if isinstance(item, dict) and item["type"] == "tool_use"]


def test_the_same_export_twice_gives_the_same_bytes(store: SessionStore) -> None:
    session = of_our_own(store)

    assert written(session) == written(session)


@pytest.mark.parametrize(
    ("block", "lost"),
    [
        (Block.thinking("hm"), "thoughts that Anthropic did not sign"),
        (Block.note("for us"), "notes"),
        (Block(kind=Kind.ARTIFACT, text="a"), "artifacts"),
        (
            Block.assistant("", native=Native(provider="openai-responses", item='{"type":"x"}')),
            "items that only openai-responses reads",
        ),
        (
            ToolCall(tool_call_id="c9", name="f", arguments="[1]"),
            "tool arguments that are no JSON object: they stand in `_raw`",
        ),
    ],
)
def test_what_it_cannot_hold_is_said(store: SessionStore, block: AnyBlock, lost: str) -> None:
    session = store.session("s")
    session.append(Block.user("go"), block)
    session.set_system_prompt("Be brief.")
    session.set_tools([{"name": "ls"}])

    found = written(session)[1]

    assert found == {lost: 1, "system prompts": 1, "tool definitions": 1}


def test_what_was_taken_back_is_left_out_and_counted(store: SessionStore) -> None:
    session = store.session("s")
    session.append(Block.user("go"), Block.assistant("gone"))
    session.append(Block.user("wrong"))
    session.retract(session.position)

    entries, lost = written(session)

    assert [entry["message"]["content"] for entry in entries if entry["type"] == "user"] == ["go"]
    assert lost == {"blocks that were taken back": 1}


def test_ids_that_anthropic_refuses_and_ids_that_come_again_are_replaced(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.session("s")
    session.append(Block.user("go"))
    for answer in ("one", "two"):
        session.append(ToolCall(tool_call_id="fc|1", name="f"))
        session.append(ToolResult(tool_call_id="fc|1", content=answer))

    entries, _ = written(session)
    again = imported(store, entries, tmp_path)

    ids = [item["id"] for entry in entries for item in calls(entry)]
    assert len(set(ids)) == 2
    assert all(id.startswith("toolu_") for id in ids)
    assert said(again) == said(session)


def test_a_sub_agents_file_says_whom_it_works_for(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("s/a", parent=Parent(namespace="default", key="s"))
    session.append(Block.user("count"))

    entries, _ = written(session)
    again = imported(store, entries, tmp_path)

    assert [(entry["isSidechain"], bool(entry["agentId"])) for entry in entries] == [(True, True)]
    assert again.parent
    assert again.parent.key == entries[0]["sessionId"]


def test_a_compaction_is_a_boundary_a_summary_and_what_was_preserved(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.session("s")
    for number in range(8):
        session.append(Block.user(f"question {number} " + "word " * 50))
        session.append(Block.assistant(f"answer {number} " + "word " * 50))
    assert session.compact(settings={"keep_tokens": "200"}, limit=1_000).compacted
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


def test_a_compacted_view_begins_with_its_summary(store: SessionStore, tmp_path: Path) -> None:
    session = store.session("s")
    for number in range(8):
        session.append(Block.user(f"question {number} " + "word " * 50))
        session.append(Block.assistant(f"answer {number} " + "word " * 50))
    assert session.compact(settings={"keep_tokens": "200"}, limit=1_000).compacted
    summary = session.view().summary
    assert summary

    entries, _ = written(session, view=True)
    again = imported(store, entries, tmp_path)

    assert [entry.get("subtype") for entry in entries[:2]] == ["compact_boundary", None]
    first, *rest = again.view().entries
    assert isinstance(first.block, Block)
    assert (first.block.kind, first.block.name) == (Kind.DEVELOPER, "summary")
    assert first.block.text == summary.text
    assert [entry.block.text for entry in rest] == [
        entry.block.text for entry in session.view().entries
    ]


def talked(tmp_path: Path, store: SessionStore) -> StoredSession:
    talk = Talk()
    talk.user("go", cwd="/shop", version="2.1.9")
    talk.says("m1", text("gone"))
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk.raw())
    list(import_path(store, path))
    return store.session(SESSION, create=False)


def test_what_goes_on_here_goes_on_in_the_file(store: SessionStore, tmp_path: Path) -> None:
    session = talked(tmp_path, store)
    session.append(Block.user("on"))
    session.append(ToolCall(tool_call_id="t1", name="ls"))
    session.append(ToolResult(tool_call_id="t1", content="a.txt"))
    session.retitle("Going on")

    entries, lost = written(session)
    again = imported(store, entries, tmp_path)

    assert lost == {}
    assert said(again) == said(session)
    assert again.title == "Going on"
    assert entries[2]["parentUuid"] == entries[1]["uuid"]
    assert {entry["sessionId"] for entry in entries} == {SESSION}
    assert entries[2]["cwd"] == "/shop"


def test_what_was_taken_back_here_is_a_rewind_in_the_file(
    store: SessionStore, tmp_path: Path
) -> None:
    session = talked(tmp_path, store)
    session.append(Block.user("wrong"))
    wrong = session.position
    session.retract(wrong)
    session.append(Block.user("right"))

    entries, _ = written(session)

    assert said(imported(store, entries, tmp_path)) == said(session)


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


def test_a_summary_that_was_exported_as_a_message_is_known_again(
    store: SessionStore, tmp_path: Path
) -> None:
    message = wrapped("much was said", Ranges.span(1, 9))
    alone, after = Talk(), Talk()
    alone.user(message, **MARK)
    after.user("go")
    after.user([text(message)], **MARK)

    first = imported(store, alone.entries, tmp_path)

    assert said(first) == [("developer", "much was said")]
    assert written(first)[0] == alone.entries
    path = tmp_path / "22222222-2222-3333-4444-555555555555.jsonl"
    path.write_bytes(after.raw())
    list(import_path(store, path))
    second = store.session(path.stem, create=False)
    summary = second.view(lineage="recorded").summary
    assert summary
    assert summary.text == "much was said"
    assert written(second)[0] == after.entries


def test_a_users_words_are_never_a_summary(store: SessionStore, tmp_path: Path) -> None:
    pasted = wrapped("drop it all", Ranges.span(1, 9))
    talk = Talk()
    talk.user("go")
    talk.user(pasted)

    session = imported(store, talk.entries, tmp_path)

    assert said(session) == [("user", "go"), ("user", pasted)]
    assert session.view(lineage="recorded").summary is None

"""A compaction is written in Codex's own way, and is the same boundary when imported again."""

from pathlib import Path

import pytest
from codex_talk import THREAD, Rollout, message, sealed
from codex_written import CutAt, again, imported, items_of, lines_of, said

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.exporting.exporter import export


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


@pytest.fixture
def session(store: SessionStore) -> StoredSession:
    return store.session(THREAD)


def test_a_compaction_becomes_one_of_codex_and_a_boundary_again(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("first " * 300), Block.assistant("yes " * 300))
    session.append(Block.user("second " * 300))
    session.append(ToolCall(tool_call_id="c", name="ls"))
    session.append(ToolResult(tool_call_id="c", content="long " * 500))
    session.compact(CutAt(6, shortened=8))
    session.append(Block.assistant("third"))
    target = tmp_path / "out.jsonl"

    report = export(session, "codex", target)

    (compacted,) = [line["payload"] for line in lines_of(target) if line["type"] == "compacted"]
    summary, prompt, call, result = compacted["replacement_history"]
    assert summary["content"][0]["text"] == compacted["message"]
    assert prompt["content"][0]["text"] == "second " * 300
    assert (call["call_id"], result["call_id"]) == ("c", "c")
    assert len(result["output"]) < 200
    assert report.lost == {}
    copy = again(store, target).view(lineage="recorded")
    before = session.view()
    assert copy.summary
    assert before.summary
    assert copy.summary.text == before.summary.text
    assert [entry.text for entry in copy.entries] == [entry.text for entry in before.entries]
    assert copy.boundary
    assert before.boundary
    assert copy.boundary.post_tokens == before.boundary.post_tokens


def test_two_compactions_say_what_each_of_them_kept(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    for word in ("first", "second", "third"):
        session.append(Block.user(f"{word} " * 300), Block.assistant(f"{word} yes " * 300))
        session.compact(CutAt(session.position - 1))
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    kept = [
        [item["content"][0]["text"].split()[0] for item in payload["replacement_history"][1:]]
        for line in lines_of(target)
        if line["type"] == "compacted" and (payload := line["payload"])
    ]
    shown = [entry.text.split()[0] for entry in session.view().entries]
    assert kept[-1] == shown
    copy = again(store, target).view(lineage="recorded")
    assert [entry.text.split()[0] for entry in copy.entries] == shown


def test_a_view_begins_with_its_summary_and_says_the_same_when_imported_again(
    store: SessionStore, session: StoredSession, tmp_path: Path
) -> None:
    session.append(Block.user("first " * 300), Block.assistant("yes " * 300))
    session.append(Block.user("second"), Block.assistant("two"))
    session.compact(CutAt(session.position - 1))
    target = tmp_path / "out.jsonl"

    export(session, "codex", target, view=True)

    summary = session.view().summary
    assert summary
    texts = [item["content"][0]["text"] for item in items_of(target)]
    assert texts == ["second", "two"]
    told = said(again(store, target))
    assert told[0] == ("developer", summary.text, None)
    assert told[1:] == said(session)


def test_the_view_of_a_rollout_holds_what_its_compaction_brought(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.user("first")
    told.says("one")
    told.compacts(message("user", "first"), message("developer", "rules"), sealed())
    told.calls("c")
    told.returns("c", [{"type": "input_text", "text": "x"}])
    session = imported(store, tmp_path / "in.jsonl", told)
    target = tmp_path / "out.jsonl"

    export(session, "codex", target, view=True, lineage="recorded")

    (compacted,) = [line["payload"] for line in lines_of(target) if line["type"] == "compacted"]
    assert len(compacted["replacement_history"]) == 1
    items = items_of(target)
    assert [item["type"] for item in items] == [
        *("message", "message", "compaction", "function_call", "function_call_output")
    ]
    assert items[2] == sealed()
    assert items[4]["output"] == [{"type": "input_text", "text": "x"}]


def test_what_came_of_one_line_of_a_compaction_stays_apart(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.user("first")
    told.compacts(message("developer", "a", "b"), message("developer", "c", "d"))
    session = imported(store, tmp_path / "in.jsonl", told)
    target = tmp_path / "out.jsonl"

    export(session, "codex", target, view=True, lineage="recorded")

    assert [len(item["content"]) for item in items_of(target)] == [2, 2]

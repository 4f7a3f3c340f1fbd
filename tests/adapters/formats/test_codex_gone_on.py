"""A session that came from Codex and went on here goes on in its own shape."""

from pathlib import Path

import pytest
from codex_talk import Rollout, message
from codex_written import CutAt, again, imported, items_of, lines_of, said, said_in_all
from transcripts import SAMPLES, import_file

from cutbank import Block, SessionStore, ToolResult
from cutbank.adapters.runtime.exporting.exporter import export


@pytest.fixture
def engine() -> str:
    """How events are stored is tested on both databases elsewhere."""
    return "sqlite"


def test_a_rollout_that_went_on_here_goes_on_in_its_own_shape(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.model("gpt-a")
    told.user("first")
    told.item("custom_tool_call", call_id="c", name="exec", input="1 + 1")
    session = imported(store, tmp_path / "in.jsonl", told)
    session.append(ToolResult(tool_call_id="c", content="2"), Block.assistant("two"))
    session.append(Block.user("more " * 400), Block.assistant("yes " * 400), Block.user("on"))
    session.compact(CutAt(session.position))
    session.retitle("Sums")
    target = tmp_path / "out.jsonl"

    assert export(session, "codex", target).lost == {}

    lines = lines_of(target)
    assert [line for line in lines if line["type"] != "event_msg"][:4] == told.lines
    assert items_of(target)[2] == {
        "type": "custom_tool_call_output",
        "call_id": "c",
        "output": "2",
    }
    assert [line["type"] for line in lines].count("session_meta") == 1
    assert [line["type"] for line in lines].count("turn_context") == 1
    assert said_in_all(again(store, target)) == said_in_all(session)
    compacted = next(line["payload"] for line in lines if line["type"] == "compacted")
    assert compacted["replacement_history"][-1] == message("user", "on")


def test_what_was_taken_back_here_is_left_out_and_what_codex_took_back_is_not(
    store: SessionStore, tmp_path: Path
) -> None:
    told = Rollout()
    told.user("first")
    told.user("second")
    told.event("thread_rolled_back", num_turns=1)
    told.user("third")
    session = imported(store, tmp_path / "in.jsonl", told)
    session.rewind(session.position - 1)
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    assert [item["content"][0]["text"] for item in items_of(target)] == ["first", "second"]
    assert said(again(store, target)) == said(session)


def test_the_oldest_rollouts_go_on_without_anything_around_their_items(
    store: SessionStore, tmp_path: Path
) -> None:
    old = (
        SAMPLES / "codex" / "rollout-2025-06-01T08-00-00-019a0000-0000-7000-8000-000000000004.jsonl"
    )
    (key,) = import_file(store, old).sessions
    session = store.session(key, create=False)
    session.append(Block.user("And the rafts?"), Block.assistant("None."))
    target = tmp_path / "out.jsonl"

    export(session, "codex", target)

    lines = lines_of(target)
    assert lines[:-2] == lines_of(old)
    assert lines[-2:] == [message("user", "And the rafts?"), message("assistant", "None.")]
    assert said(again(store, target)) == said(session)

"""What a session of Copilot CLI becomes, one rule a test."""

import json
from pathlib import Path
from typing import Any

from claude_code_talk import Reading
from told_elsewhere import again, said

from cutbank import SessionStore
from cutbank.adapters.transcripts.formats.copilot_cli import FORMAT
from cutbank.adapters.transcripts.formats.source import TranscriptSource
from cutbank.adapters.transcripts.formats.steps import SessionStart

Event = dict[str, Any]


def reading(path: Path) -> Reading:
    return Reading(list(FORMAT.read(TranscriptSource(path))))


def events(path: Path, *told: tuple[str, Event]) -> Path:
    """A session of these events: their types and data."""
    whole = [("session.start", {"sessionId": "s1"}), *told]
    lines = [
        {"type": kind, "data": data, "id": f"e{at}", "timestamp": "t", "parentId": None}
        for at, (kind, data) in enumerate(whole)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def asks(*ids: str) -> tuple[str, Event]:
    requests = [{"toolCallId": id, "name": "look", "arguments": {}} for id in ids]
    return "assistant.message", {"messageId": "m", "content": "", "toolRequests": requests}


def answers(id: str, content: str = "calm") -> tuple[str, Event]:
    told = {"toolCallId": id, "success": True, "result": {"content": content}}
    return "tool.execution_complete", told


def test_calls_of_one_id_are_told_apart_while_they_wait(
    store: SessionStore, tmp_path: Path
) -> None:
    path = events(tmp_path / "a.jsonl", asks("c1", "c1"), asks("c1"), answers("c1"))

    imported, report = again(store, path)

    assert report.errors == []
    assert len({call for kind, _, call in said(imported) if kind == "tool_call"}) == 3


def test_a_file_without_a_start_is_known_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "0b0a"
    folder.mkdir()
    path = events(folder / "events.jsonl", ("user.message", {"content": "go"}))
    path.write_text(path.read_text().split("\n", 1)[1])

    assert FORMAT.recognizes(TranscriptSource(path))
    assert reading(path).of(SessionStart) == [SessionStart("0b0a")]

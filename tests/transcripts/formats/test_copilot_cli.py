"""What a session of Copilot CLI becomes, one rule a test."""

import json
from pathlib import Path
from typing import Any

from claude_code_talk import Reading

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


def test_a_file_without_a_start_is_known_by_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "0b0a"
    folder.mkdir()
    path = events(folder / "events.jsonl", ("user.message", {"content": "go"}))
    path.write_text(path.read_text().split("\n", 1)[1])

    assert FORMAT.recognizes(TranscriptSource(path))
    assert reading(path).of(SessionStart) == [SessionStart("0b0a")]

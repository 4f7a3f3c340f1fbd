"""Formats are told by content; real transcripts are found, recognised and read whole."""

import csv
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from claude_code_talk import Reading, Talk

from cutbank.adapters.transcripts.formats.catalog import find_transcripts, recognise
from cutbank.adapters.transcripts.formats.claude_code import FORMAT
from cutbank.adapters.transcripts.formats.source import Source
from cutbank.adapters.transcripts.formats.steps import Append, Compacted, EntryRead


def test_a_transcript_is_told_by_its_content(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("go")
    path = tmp_path / "notes.txt"
    path.write_bytes(b'{"type":"summary","summary":"t","leafUuid":"u"}\nnonsense\n' + talk.raw())

    found = recognise(Source(path))

    assert found
    assert found.name == "claude-code"


@pytest.mark.parametrize(
    "value",
    [
        {"type": "session", "id": "s", "timestamp": "t", "cwd": "/"},
        {"type": "message", "message": {"role": "user"}, "id": "1", "parentId": None},
        {"type": "session_meta", "timestamp": "t", "payload": {}},
        {"type": "user.message", "data": {}, "id": "1", "parentId": None},
        {"role": "user", "content": "go"},
        [],
        "user",
    ],
)
def test_other_formats_are_not_recognised(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(value))

    assert not FORMAT.recognises(Source(path))


def test_a_file_of_anything_else_is_of_no_format(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for raw in (b"", b"\n\n", b"\0" * 100, b"{" * 100, bytes(range(256))):
        path.write_bytes(raw)
        assert recognise(Source(path)) is None


def test_transcripts_are_found_once_and_a_session_before_its_sub_agents(tmp_path: Path) -> None:
    below = tmp_path / "a" / "subagents"
    below.mkdir(parents=True)
    names = ["b.jsonl", "agent-x.jsonl", "a.jsonl", "a/subagents/agent-y.jsonl", "a/notes.txt"]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "folder.jsonl").mkdir()
    (below / "loop").symlink_to(tmp_path)

    found = [path.relative_to(tmp_path).as_posix() for path in find_transcripts(tmp_path)]

    assert found == ["a.jsonl", "b.jsonl", "agent-x.jsonl", "a/subagents/agent-y.jsonl"]


SESSIONS = os.environ.get("CUTBANK_SESSIONS")


@pytest.mark.skipif(not SESSIONS, reason="CUTBANK_SESSIONS names no folder of real sessions")
def test_real_sessions_are_read_whole() -> None:
    root = Path(SESSIONS or "")
    with (root / "manifest.csv").open(newline="") as file:
        expected = {row["path"]: row for row in csv.DictReader(file)}
    transcripts = list(find_transcripts(root / "claude-code"))

    for path in transcripts:
        found = recognise(Source(path))
        assert found
        assert found.name == "claude-code"
        reading = Reading(list(found.read(Source(path))))
        counts = Counter(block.kind.value for block in reading.blocks)
        row = expected[path.relative_to(root).as_posix()]
        entries = sum(1 for line in path.read_bytes().split(b"\n") if line.strip())
        assert len(reading.of(EntryRead)) == entries, path
        assert counts["tool_call"] == int(row["tool_calls"]), path
        assert counts["tool_result"] == int(row["tool_results"]), path
        assert len(reading.of(Compacted)) == int(row["compactions"]), path
        assert len({step.key for step in reading.of(Append)}) == len(reading.of(Append)), path
    assert transcripts

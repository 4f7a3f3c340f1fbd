"""Formats are told by content; real transcripts are found, recognised and read whole."""

from pathlib import Path

from claude_code_talk import Talk

from cutbank.adapters.transcripts.formats.catalog import find_transcripts, recognize_format
from cutbank.adapters.transcripts.formats.source import TranscriptSource


def test_a_transcript_is_told_by_its_content(tmp_path: Path) -> None:
    talk = Talk()
    talk.user("go")
    path = tmp_path / "notes.txt"
    path.write_bytes(b'{"type":"summary","summary":"t","leafUuid":"u"}\nnonsense\n' + talk.raw())

    found = recognize_format(TranscriptSource(path))

    assert found
    assert found.name == "claude-code"


def test_a_file_of_anything_else_is_of_no_format(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for raw in (b"", b"\n\n", b"\0" * 100, b"{" * 100, bytes(range(256))):
        path.write_bytes(raw)
        assert recognize_format(TranscriptSource(path)) is None


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

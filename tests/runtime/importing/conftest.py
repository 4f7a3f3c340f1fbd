"""Transcripts of several sessions, with sub-agents, in a folder."""

from pathlib import Path

import pytest
from claude_code_talk import Talk, text


def talk_of(key: str, turns: int = 3, size: int = 40) -> Talk:
    """A session of some turns with a tool call each."""
    talk = Talk()
    for turn in range(turns):
        talk.user(f"{key}: question {turn} " + "x" * size)
        talk.calls(f"m{turn}", f"{key}-t{turn}")
        talk.result(f"{key}-t{turn}", f"{key}: result {turn} " + "y" * size)
        talk.says(f"n{turn}", text(f"{key}: answer {turn}"))
    for entry in talk.entries:
        entry["sessionId"] = key
    return talk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "transcripts"
    made.mkdir()
    return made


def write(folder: Path, name: str, talk: Talk) -> Path:
    path = folder / name
    path.write_bytes(talk.raw())
    return path

"""What agents have left on a machine is found, whatever moved their folders."""

from pathlib import Path

import pytest

from cutbank.adapters.runtime.importing.importer import (
    FOLDER_VARIABLES,
    find_home_patterns,
    find_installed_transcripts,
    list_hints,
)
from cutbank.adapters.transcripts.formats.catalog import FORMATS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "[home]"
    monkeypatch.setenv("HOME", str(home))
    for _, variable, _ in FOLDER_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return home


def left(folder: Path, name: str, text: str = "{}\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_files_sessions_and_sizes_are_counted(home: Path) -> None:
    projects = home / ".claude" / "projects"
    files = [
        left(projects / "a", "s-1.jsonl", "{}\n{}\n"),
        left(projects / "b", "s-2.jsonl"),
        left(projects / "b" / "s-2" / "subagents", "agent-1.jsonl"),
    ]
    left(projects / "b" / "memory", "notes.md", "# no transcript\n")

    (found,) = find_installed_transcripts()

    assert (found.format, found.folders) == ("claude-code", [str(projects)])
    assert (found.files, found.sessions, found.bytes) == (files, 2, 12)
    assert found.newest == max(file.stat().st_mtime for file in files)


def test_a_folder_that_a_variable_names_is_looked_into_first_and_a_file_found_once(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = left(home / ".claude" / "projects" / "a", "s-1.jsonl")
    moved = left(tmp_path / "els*where" / "projects" / "a", "s-2.jsonl")
    (moved.parent / "s-3.jsonl").symlink_to(usual)
    chat = left(tmp_path / "else" / ".gemini" / "tmp" / "p" / "chats", "session-1.json")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "els*where"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "else"))

    found = {one.format: one.files for one in find_installed_transcripts()}

    assert found == {"claude-code": [moved, moved.parent / "s-3.jsonl"], "gemini-cli": [chat]}


def test_every_home_is_a_place_that_one_can_look_into(home: Path) -> None:
    for one in FORMATS.values():
        assert all(Path(pattern).is_absolute() for pattern in find_home_patterns(one)), one.name


def test_what_an_agent_has_to_export_is_not_found_but_said(home: Path) -> None:
    assert list_hints() == []
    left(home / ".local" / "share" / "opencode" / "storage" / "session", "ses_1.json")
    left(home / ".openhands" / "sessions" / "s" / "events", "0.json")

    assert find_installed_transcripts() == []
    (hint,) = list_hints()
    assert "opencode export" in hint

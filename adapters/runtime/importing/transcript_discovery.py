"""Finds the transcripts that agents have left in their usual folders on this machine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import escape, iglob
from pathlib import Path

from ...transcripts.formats.catalog import FORMATS, find_transcripts
from ...transcripts.formats.format import Format
from ...transcripts.formats.source import TranscriptSource
from .file_import import WantedFile

FOLDER_VARIABLES = (
    ("~/.claude", "CLAUDE_CONFIG_DIR", ""),
    ("~/.codex", "CODEX_HOME", ""),
    ("~/.pi/agent/sessions", "PI_CODING_AGENT_SESSION_DIR", ""),
    ("~/.pi/agent", "PI_CODING_AGENT_DIR", ""),
    ("~/.omp/agent", "PI_CODING_AGENT_DIR", ""),
    ("~/.copilot", "COPILOT_HOME", ""),
    ("~/.gemini", "GEMINI_CLI_HOME", "/.gemini"),
    ("~/.openhands/conversations", "OPENHANDS_CONVERSATIONS_DIR", ""),
    ("~/.openhands", "OPENHANDS_PERSISTENCE_DIR", ""),
    ("~/.local/share", "XDG_DATA_HOME", ""),
)
"""Folders of agents, the variables that move them, and their paths below a variable's folder."""

EXPORT_HINTS = (
    (
        "~/.local/share/opencode",
        "sessions of opencode are read once `opencode export SESSION > FILE` has written them",
    ),
)
"""Folders of agents whose sessions only they can read, with advice on how to export them."""


@dataclass(slots=True)
class FoundTranscripts:
    format: str
    folders: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    sessions: int = 0
    """The number of files that are not a sub-agent's, judged by their names alone."""
    bytes: int = 0
    newest: float = 0.0
    """The newest modification time, in seconds since 1970."""

    @property
    def wanted_files(self) -> list[WantedFile]:
        return [WantedFile(file, is_named=False) for file in self.files]


def find_installed_transcripts() -> list[FoundTranscripts]:
    """Return the transcripts of each agent that has any, judging by names without opening files."""
    taken: set[Path] = set()
    every = (_find_agent_files(one, taken) for one in FORMATS.values() if one.home_patterns)
    return [found for found in every if found.files]


def find_home_patterns(agent: Format) -> list[str]:
    """Return glob patterns for the agent's transcripts; those from a variable come first."""
    return [pattern for home in agent.home_patterns for pattern in _expand_home(home)]


def list_hints() -> list[str]:
    """Return advice about sessions that only their agents can read."""
    return [
        hint
        for home, hint in EXPORT_HINTS
        if any(Path(place).is_dir() for pattern in _expand_home(home) for place in iglob(pattern))  # noqa: PTH207 - absolute pattern
    ]


def _expand_home(home: str) -> Iterator[str]:
    for usual, variable, below in FOLDER_VARIABLES:
        moved = os.environ.get(variable)
        if moved and (home == usual or home.startswith(f"{usual}/")):
            # Also look where transcripts were before the variable was set.
            yield escape(os.path.expanduser(moved)) + below + home.removeprefix(usual)  # noqa: PTH111 - a Path would raise
    if home.startswith("~/"):
        yield escape(os.path.expanduser("~")) + home.removeprefix("~")  # noqa: PTH111 - as above
    else:
        yield home


def _find_agent_files(agent: Format, taken: set[Path]) -> FoundTranscripts:
    found = FoundTranscripts(agent.name)
    for pattern in find_home_patterns(agent):
        for home in sorted(iglob(pattern, recursive=True)):  # noqa: PTH207 - absolute pattern
            before = len(found.files)
            for file in _list_transcripts(Path(home), agent):
                _add_file(found, file, taken)
            if len(found.files) > before:
                found.folders.append(home)
    return found


def _list_transcripts(home: Path, agent: Format) -> Iterator[Path]:
    if not home.is_dir():
        yield home
        return
    for file in find_transcripts(home):
        if file.is_dir() or file.name.endswith(agent.suffix):
            yield file


def _add_file(found: FoundTranscripts, file: Path, taken: set[Path]) -> None:
    try:
        place = file.resolve()
        if place in taken:
            return
        size, changed = TranscriptSource(file).size, file.stat().st_mtime
    except OSError:
        return  # it was just deleted
    taken.add(place)
    found.files.append(file)
    found.sessions += not file.name.startswith("agent-")
    found.bytes += size
    found.newest = max(found.newest, changed)

"""Finds the transcripts that agents left on this machine, and imports these or others."""

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape, iglob
from pathlib import Path

from ....domain.errors import ImportFileError
from ....domain.hooks import Progress
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.process_forks import count_cores
from ...transcripts.formats.catalog import FORMATS, find_transcripts
from ...transcripts.formats.format import Format
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .file_import import WantedFile, import_file, report_unchanged
from .transcript_import import DEFAULT_OPTIONS, ImportOptions, SubAgentLinks, record_parents

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


MIN_BYTES_PER_PROCESS = 40_000_000
"""The bytes that one process imports while another one starts."""


def import_transcripts(
    store: SessionStore, path: str | Path, *, namespace: str = "default"
) -> list[FileReport]:
    """Import a transcript, or all below a folder, adding only what is new.

    The faults of a file are in its report, and the rest is imported. Raises ImportFileError if
    there is nothing at `path` to import.
    """
    return list(import_files(store, list_wanted_files(Path(path)), ImportOptions(namespace)))


def list_wanted_files(path: Path) -> list[WantedFile]:
    """Return the files to import for `path`."""
    if not path.exists():
        raise ImportFileError(f"{path} does not exist")
    if not path.is_dir():
        return [WantedFile(path)]
    files = [WantedFile(file, is_named=file == path) for file in find_transcripts(path)]
    if not files:
        raise ImportFileError(f"{path} holds no transcripts")
    return files


def import_files(
    store: SessionStore,
    files: Sequence[WantedFile],
    options: ImportOptions = DEFAULT_OPTIONS,
    *,
    progress: Progress | None = None,
    skip_unchanged: bool = False,
    jobs: int | None = 1,
) -> Generator[FileReport]:
    """Import these files in their order; yield one report each, those of skipped files first.

    `progress` is called with the bytes read and the bytes in all. Entries that are already stored
    are recognized by their own ids and skipped. `skip_unchanged` skips files that have not changed
    since an import without errors. `jobs` is the number of processes; None picks one by cores and
    size.
    """
    store.events.refuse_batch("an import")
    if skip_unchanged:
        changed: list[WantedFile] = []
        for file in files:
            with translate_storage_errors(store.name):
                report = report_unchanged(store, options, file.path)
            if report:
                yield report
            else:
                changed.append(file)
        files = changed
    total = sum(_file_size(file.path) for file in files)
    processes = _count_processes(store, len(files), total, jobs)

    def report_progress(done: int, offset: int = 0) -> None:
        if progress:
            progress(done + offset, total)

    links = SubAgentLinks()
    if processes > 1:
        from .import_pool import import_in_processes  # noqa: PLC0415 - a few files need no processes

        opening = store.context.opening
        assert opening is not None, "else there is one process"
        yield from import_in_processes(opening, options, files, processes, links, report_progress)
        with translate_storage_errors(store.name):
            record_parents(store, options.target_namespace, links.known.values())
    else:
        done = 0
        for file in files:
            with translate_storage_errors(store.name):
                report = import_file(store, options, file, links, partial(report_progress, done))
            yield report
            done += report.bytes
            report_progress(done)
    with translate_storage_errors(store.name):
        # All is read now, so mark as complete also the files that waited for their sub-agents.
        store.events.save(imports=links.unsettled)


def _count_processes(store: SessionStore, files: int, size: int, jobs: int | None) -> int:
    """Return how many processes import; 1 means only this one."""
    opening = store.context.opening
    if files < 2 or jobs == 1 or opening is None or store.events.recorder.is_in_memory:
        return 1  # only this process has its database in memory
    if jobs is not None:
        return min(jobs, files)
    return min(count_cores(), files, 1 + size // MIN_BYTES_PER_PROCESS)


def _file_size(path: Path) -> int:
    try:
        return TranscriptSource(path).size
    except OSError:
        return 0

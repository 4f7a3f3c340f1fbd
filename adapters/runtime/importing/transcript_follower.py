"""Follows transcripts while agents write them, and stores new entries as they come."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING

from ....domain.errors import ImportFileError
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.catalog import TRANSCRIPT_SUFFIXES, find_transcripts, recognize_format
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .file_import import WantedFile, import_file, report_unchanged
from .live_file import FileNews, LiveFile
from .transcript_import import (
    DEFAULT_OPTIONS,
    ImportOptions,
    SubAgentLinks,
    TranscriptImport,
)

if TYPE_CHECKING:
    from watchfiles import Change

QUIET_MS = 1_000
"""After this time without a change, the entries that were waiting for a file's end are stored."""
DEBOUNCE_MS = 200
SCAN_INTERVAL_S = 30.0
"""How often to look at all files, since the operating system may drop change events."""
MAX_OPEN_FILES = 64
"""How many files stay open with their readers; an older one that changes is read again."""

_FileMark = tuple[int, int, int]
"""A file's inode, size and modification time."""


class TranscriptFollower:
    """Follows files, and all present and future transcripts below folders."""

    def __init__(
        self,
        store: SessionStore,
        paths: Sequence[Path],
        *,
        options: ImportOptions = DEFAULT_OPTIONS,
        heard: Callable[[FileNews], None],
        imported: Callable[[FileReport], None] = lambda _: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`imported` is called with files that cannot be followed, as their format is read whole.

        Raises ImportFileError if a path does not exist.
        """
        for path in paths:
            if not path.exists():
                reason = "does not exist: make the folder, if its agent has yet to run"
                raise ImportFileError(f"{path} {reason}")
        self.store = store
        self.options = options
        self.heard = heard
        self.imported = imported
        self.clock = clock
        named = [path.resolve() for path in paths]
        self.folders = [path for path in named if path.is_dir()]
        self.files = {path for path in named if not path.is_dir()}
        self.links = SubAgentLinks()
        self.live: OrderedDict[Path, LiveFile] = OrderedDict()
        """The open files, with the last changed ones at the end."""
        self.changed: dict[Path, float] = {}
        """The files that have changed and are not at rest, with the time of the change."""
        self.marks: dict[Path, _FileMark] = {}
        """The state of each file at the last look."""
        self.looked_around = 0.0
        self.reports: dict[Path, FileReport] = {}
        """The result for each file that was read, since it was last begun."""

    def follow(self, stop: Event, ready: Callable[[], None] = lambda: None) -> None:
        """Import what is there, then what is written, until `stop` is set.

        `ready` is called once all existing entries are stored and changes are watched. Raises
        ImportFileError if watchfiles is not installed.
        """
        watch = _load_watcher()
        roots = {*self.folders, *(file.parent for file in self.files)}
        changes = watch(
            *roots,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            rust_timeout=QUIET_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            stop_event=stop,
            recursive=bool(self.folders),
        )
        with translate_storage_errors(self.store.name):
            try:
                self.begin()
                ready()
                for batch in changes:
                    self.handle_changes(batch)
                self.end()
            finally:
                for file in self.live.values():
                    file.close()

    def begin(self) -> None:
        for path in self._list_transcripts():
            if not self._is_stored(path):
                self._advance(path)
                if path not in self.reports:
                    self._import_once(path)
        # All is read now, so mark as complete also the files that waited for their sub-agents.
        self.store.events.save(imports=self.links.unsettled)
        self.links.unsettled.clear()
        self._settle(self.changed)

    def handle_changes(self, batch: "Iterable[tuple[Change, str]]") -> None:
        """Read the files that changed; settle those that have been quiet for a while."""
        touched = dict.fromkeys(Path(name) for _, name in batch)
        paths = {found: None for path in touched for found in self._transcripts_at(path)}
        if self.clock() - self.looked_around >= SCAN_INTERVAL_S:
            paths |= dict.fromkeys(self._changed_files())
        for path in paths:
            self._advance(path)
        now = self.clock()
        at_rest = now - QUIET_MS / 1_000
        self._settle([path for path, at in self.changed.items() if not touched or at <= at_rest])

    def end(self) -> None:
        for file in self.live.values():
            self._report_news(file.end())
        self.live.clear()
        self.changed.clear()

    def _advance(self, path: Path) -> None:
        self.marks[path] = _read_mark(path)
        if (file := self.live.get(path)) is None:
            file = LiveFile(self.store, path, self.options, self.links)
        self.live[path] = file  # before it is read, so that it is closed even after an error
        self.live.move_to_end(path)
        self._report_news(file.advance())
        if file.report is None:
            del self.live[path]
            self.changed.pop(path, None)
            return
        self.reports[path] = file.report
        self.changed[path] = self.clock()
        while len(self.live) > MAX_OPEN_FILES:
            oldest, given_up = self.live.popitem(last=False)
            self._report_news(given_up.end())
            self.changed.pop(oldest, None)

    def _import_once(self, path: Path) -> None:
        """Import a transcript whose format is not line by line; leave other files alone."""
        options, source = self.options, TranscriptSource(path)
        try:
            is_one = recognize_format(source) is not None
        except OSError:
            return
        if not is_one or report_unchanged(self.store, options, path):
            return
        report = import_file(self.store, options, WantedFile(path), self.links)
        self.reports[path] = report
        self.imported(report)

    def _settle(self, paths: Iterable[Path]) -> None:
        for path in list(paths):
            del self.changed[path]
            self._report_news(self.live[path].settle())

    def _report_news(self, news: Iterator[FileNews]) -> None:
        for one in news:
            self.heard(one)

    def _list_transcripts(self) -> Iterator[Path]:
        """Yield all transcripts that are there now, each session before its sub-agents."""
        yield from sorted(file for file in self.files if file.exists())
        for folder in self.folders:
            yield from find_transcripts(folder)

    def _transcripts_at(self, path: Path) -> Iterator[Path]:
        """Yield the transcripts that a change at `path` affects; for a new folder, all in it."""
        if path in self.files:
            yield path
        elif any(path.is_relative_to(folder) for folder in self.folders):
            if path.is_dir():
                yield from (found for found in find_transcripts(path) if found.is_file())
            elif path.name.endswith(TRANSCRIPT_SUFFIXES):
                yield path

    def _changed_files(self) -> Iterator[Path]:
        self.looked_around = self.clock()
        known = self.marks
        yield from [
            path for path in self._list_transcripts() if known.get(path) != _read_mark(path)
        ]

    def _is_stored(self, path: Path) -> bool:
        row = TranscriptImport(self.store, self.options, path, self.links).row
        mark = _read_mark(path)
        if not (row and row.session and row.complete and row.bytes == mark[1]):
            return False
        self.marks[path] = mark
        return True


def _read_mark(path: Path) -> _FileMark:
    try:
        status = path.stat()
    except OSError:
        return (0, -1, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _load_watcher() -> "Callable[..., Iterator[set[tuple[Change, str]]]]":
    try:
        from watchfiles import watch  # noqa: PLC0415 - the extra `follow`
    except ImportError:
        raise ImportFileError(
            "following needs watchfiles, which is not installed: pip install 'cutbank[follow]'"
        ) from None
    return watch

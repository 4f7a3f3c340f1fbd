"""Reads the folder of an OpenHands conversation: its state, and a file for each event."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..json_lines import SourceLine
from ..source import TranscriptSource

_EVENT_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,})\.json")
"""The file name of an event: its number, and its id."""
STATE_FILE_NAMES = ("base_state.json", "meta.json")
_EVENT_FOLDERS = ("", "event_service/")
"""Where the events may be: in the conversation's folder, or a server's folder below it."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of the folder: its value, or the reason why it is not read."""

    name: str
    number: int
    line: SourceLine


class EventFolder:
    """The files of a conversation, read one by one."""

    def __init__(self, source: TranscriptSource, within: str) -> None:
        self.source = source
        self.within = within
        self.read = 0

    def read_states(self) -> Iterator[FolderFile]:
        """Yield the files that are not events."""
        for name in STATE_FILE_NAMES:
            if (self.source.path / self.within / name).exists():
                yield self.read_file(f"{self.within}{name}", 0)

    def read_events(self) -> Iterator[FolderFile]:
        """Yield the events, ordered by number."""
        numbered = sorted((int(found[1]), found[0]) for found in self._event_names())
        for number, name in numbered:
            yield self.read_file(f"{self.within}events/{name}", number)

    def read_other_files(self) -> Iterator[FolderFile]:
        """Yield JSON files among the events that have no event's name."""
        for name in sorted(_file_names(self.source.path / self.within / "events")):
            if name.endswith(".json") and _EVENT_NAME.fullmatch(name) is None:
                yield self.read_file(f"{self.within}events/{name}", 0)

    def read_file(self, name: str, number: int) -> FolderFile:
        """Read a file of the folder; a link to a file elsewhere is not followed."""
        file = self.source.path / name
        try:
            if not file.resolve().is_relative_to(self.source.path.resolve()):
                line = SourceLine(number, self.read, problem=f"{name}: a link out of the folder")
            elif not file.is_file():
                line = SourceLine(number, self.read, problem=f"{name}: no file")
            else:
                line = self.source.read_member(name)
                self.read += line.end
        except (OSError, RuntimeError) as error:
            line = SourceLine(number, self.read, problem=f"{name}: cannot be read: {error}")
        return FolderFile(name, number, line)

    def _event_names(self) -> Iterator[re.Match[str]]:
        for name in _file_names(self.source.path / self.within / "events"):
            if found := _EVENT_NAME.fullmatch(name):
                yield found


def find_event_folder(source: TranscriptSource) -> EventFolder | None:
    if not source.is_folder:
        return None
    for within in _EVENT_FOLDERS:
        folder = EventFolder(source, within)
        if any(
            _EVENT_NAME.fullmatch(name) for name in _file_names(source.path / within / "events")
        ):
            return folder
    return None


def _file_names(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        for file in folder.iterdir():
            yield file.name.encode(errors="replace").decode()

"""The folder of an OpenHands conversation: its state, and its events, a file each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..json_lines import Line
from ..source import Source

EVENT = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,})\.json")
"""How an event's file is called: its number, and the event's id."""
STATES = ("base_state.json", "meta.json")
_WITHIN = ("", "event_service/")
"""Where the events may lie: in the conversation's folder, or a server's folder below it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file of the folder: what it says, or why it is not read."""

    name: str
    number: int
    line: Line


class Folder:
    """The files of a conversation, read one by one."""

    def __init__(self, source: Source, within: str) -> None:
        self.source = source
        self.within = within
        self.read = 0
        """Bytes read so far."""

    def states(self) -> Iterator[Member]:
        """The files beside the events."""
        for name in STATES:
            if (self.source.path / self.within / name).exists():
                yield self.member(f"{self.within}{name}", 0)

    def events(self) -> Iterator[Member]:
        """The events, in the order of their numbers."""
        numbered = sorted((int(found[1]), found[0]) for found in self._events())
        for number, name in numbered:
            yield self.member(f"{self.within}events/{name}", number)

    def strangers(self) -> Iterator[Member]:
        """JSON files among the events that have no event's name."""
        for name in sorted(_names(self.source.path / self.within / "events")):
            if name.endswith(".json") and EVENT.fullmatch(name) is None:
                yield self.member(f"{self.within}events/{name}", 0)

    def member(self, name: str, number: int) -> Member:
        """A file of the folder; one that lies elsewhere is not followed."""
        file = self.source.path / name
        try:
            if not file.resolve().is_relative_to(self.source.path.resolve()):
                line = Line(number, self.read, problem=f"{name}: a link out of the folder")
            elif not file.is_file():
                line = Line(number, self.read, problem=f"{name}: no file")
            else:
                line = self.source.member(name)
                self.read += line.end
        except (OSError, RuntimeError) as error:
            line = Line(number, self.read, problem=f"{name}: cannot be read: {error}")
        return Member(name, number, line)

    def _events(self) -> Iterator[re.Match[str]]:
        for name in _names(self.source.path / self.within / "events"):
            if found := EVENT.fullmatch(name):
                yield found


def folder_of(source: Source) -> Folder | None:
    """The folder of events, where the source is one."""
    if not source.is_folder:
        return None
    for within in _WITHIN:
        folder = Folder(source, within)
        if any(EVENT.fullmatch(name) for name in _names(source.path / within / "events")):
            return folder
    return None


def _names(folder: Path) -> Iterator[str]:
    if folder.is_dir():
        for file in folder.iterdir():
            yield file.name.encode(errors="replace").decode()

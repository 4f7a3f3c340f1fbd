"""What a transcript format is: how it is told, read, followed and written."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from .json_lines import SourceLine
from .outgoing import OutgoingSession
from .source import TranscriptSource
from .steps import ImportStep


class LineReader(Protocol):
    """Reads a format of lines, one line at a time: of a file that is there, or that still grows."""

    def read(self, line: SourceLine) -> Iterable[ImportStep]:
        """The steps of one line."""
        ...

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:
        """The steps that are due where the file ends here, for now: lines may follow all the same.

        Whatever is said again when they do has the same keys. Where this is `final`, no line
        follows, and what waited for one is read as it is.
        """
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A way in which some agent writes its sessions down, in both directions."""

    name: str
    description: str
    """What is written in it, in a few words."""
    recognizes: Callable[[TranscriptSource], bool]
    """Whether this is a transcript of the format: told by its content, never by its name."""
    read: Callable[[TranscriptSource], Iterator[ImportStep]]
    begin_reading: Callable[[TranscriptSource], LineReader] | None = None
    """For a format of lines, which can be followed while it is written."""
    write: Callable[[OutgoingSession], Iterator[bytes]] | None = None
    """One session as a file, piece by piece; None where the format is only read."""
    write_folder: Callable[[OutgoingSession], Iterator[tuple[str, bytes]]] | None = None
    """One session as a folder: each file's path in it, with `/`, and its bytes."""
    suffix: str = ".jsonl"
    """How a file's name ends that is written in it."""
    home_patterns: tuple[str, ...] = ()
    """Where the agent keeps its transcripts, as glob patterns: `~/.agent/sessions`."""


def make_line_read(
    begin_reading: Callable[[TranscriptSource], LineReader],
) -> Callable[[TranscriptSource], Iterator[ImportStep]]:
    """The `read` of a format of lines."""

    def read(source: TranscriptSource) -> Iterator[ImportStep]:
        reader = begin_reading(source)
        for line in source.read_lines():
            yield from reader.read(line)
        yield from reader.close(final=True)

    return read

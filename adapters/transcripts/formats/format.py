"""Defines a transcript format: how to recognize, read, follow and write it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .entry_steps import refuse_line
from .json_lines import SourceLine
from .outgoing import OutgoingSession
from .source import TranscriptSource
from .steps import ImportStep


class LineReader(ABC):
    """A reader of a line format, one line at a time, from a complete or a growing file."""

    @abstractmethod
    def read(self, line: SourceLine) -> Iterable[ImportStep]: ...

    def close(self, *, final: bool = False) -> Iterable[ImportStep]:  # noqa: ARG002 - for those that wait
        """Return the steps that are due at the current end of the file; more lines may follow.

        Steps that are reported again later have the same keys. With `final`, no line follows, and
        waiting lines are read as they are. By default nothing waits.
        """
        return ()


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    description: str
    recognizes: Callable[[TranscriptSource], bool]
    """Whether this is a transcript of the format, by its content, never by its name."""
    read: Callable[[TranscriptSource], Iterator[ImportStep]]
    begin_reading: Callable[[TranscriptSource], LineReader] | None = None
    """For a line format, which can be followed while it is written."""
    write: Callable[[OutgoingSession], Iterator[bytes]] | None = None
    """Writes any session as a file, in pieces; without it, sessions are exported as they came."""
    is_folder: bool = False
    """Whether a transcript is a folder of files."""
    suffix: str = ".jsonl"
    home_patterns: tuple[str, ...] = ()
    """Where the agent keeps its transcripts, as glob patterns: `~/.agent/sessions`."""


def make_line_format(
    name: str,
    description: str,
    recognizes: Callable[[TranscriptSource], bool],
    begin_reading: Callable[[TranscriptSource], LineReader],
    write: Callable[[OutgoingSession], Iterator[bytes]] | None = None,
    *,
    home_patterns: tuple[str, ...],
) -> Format:
    """Return the format of files of lines, each with an entry."""

    def read(source: TranscriptSource) -> Iterator[ImportStep]:
        reader = begin_reading(source)
        for line in source.read_lines(source.keep):
            yield from reader.read(line)
        yield from reader.close(final=True)

    return Format(
        name, description, recognizes, read, begin_reading, write, home_patterns=home_patterns
    )


def make_document_format(
    name: str,
    description: str,
    fits: Callable[[Any], bool],
    read_document: Callable[[SourceLine, str], Iterator[ImportStep]],
    write: Callable[[OutgoingSession], Iterator[bytes]] | None = None,
    *,
    suffix: str = ".json",
    home_patterns: tuple[str, ...] = (),
) -> Format:
    """Return the format of files that are one JSON document.

    `fits` recognizes the document's value; `read_document` reads it, with the stem of its file.
    """

    def recognizes(source: TranscriptSource) -> bool:
        return source.document is not None and fits(source.document.value)

    def read(source: TranscriptSource) -> Iterator[ImportStep]:
        document = source.document or SourceLine(1, source.size, problem="not one JSON document")
        if fits(document.value):
            yield from read_document(document, source.stem)
        else:
            yield from refuse_line(document, document.problem or f"not a document of {name}")

    return Format(
        name,
        description,
        recognizes,
        read,
        write=write,
        suffix=suffix,
        home_patterns=home_patterns,
    )

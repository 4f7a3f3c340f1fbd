"""Reads one transcript line by line while it is being written."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ....domain.errors import NotFoundError
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.format import LineReader
from ...transcripts.formats.json_lines import LineFile, SourceLine
from ...transcripts.formats.steps import SourceProblem
from ...transcripts.reports import FileReport
from ..sessions.session_store import SessionStore
from .transcript_import import (
    DEFAULT_OPTIONS,
    ImportOptions,
    SubAgentLinks,
    TranscriptImport,
)

_COMPARED_BYTES = 4_096
"""The bytes at each end of what was read that are compared to detect a rewritten file."""


@dataclass(frozen=True, slots=True)
class FileNews:
    path: str
    format: str
    sessions: tuple[str, ...]
    entries: int
    added: int
    errors: tuple[str, ...]
    again: bool = False
    """Whether the file was rewritten and so read again from its beginning."""


@dataclass(slots=True)
class _Reading:
    lines: LineFile
    reader: LineReader
    importing: TranscriptImport
    ends: tuple[bytes, bytes] = (b"", b"")
    """Hashes of both ends of what was read."""
    reported_counts: tuple[int, int, int] = (0, 0, 0)
    """How many entries, blocks and errors were reported."""


@dataclass
class LiveFile:
    """A file and its reader; append keys keep rewritten files from being stored twice."""

    store: SessionStore
    path: Path
    options: ImportOptions = DEFAULT_OPTIONS
    links: SubAgentLinks = field(default_factory=SubAgentLinks)
    is_reread: bool = False
    is_deleted: bool = False
    """Whether its session was deleted meanwhile, and so is not read any more."""
    _reading: _Reading | None = None

    @property
    def report(self) -> FileReport | None:
        """The result since the file was opened; None if it cannot be followed."""
        return self._reading.importing.report if self._reading else None

    def advance(self) -> Iterator[FileNews]:
        """Read what was written since the last call."""
        yield from self._end_at_deletion(self._advance())

    def _advance(self) -> Iterator[FileNews]:
        try:
            status = self.path.stat()
        except OSError:
            yield from self.end()  # it is gone; read what was written before
            return
        if reading := self._reading:
            known = os.fstat(reading.lines.file.fileno())
            if (known.st_dev, known.st_ino) != (status.st_dev, status.st_ino):
                yield from self.end()  # another file has its name
                self.is_reread = True
            elif _read_ends(reading.lines) != reading.ends:
                self.close()
                self.is_reread = True
        if self._reading is None and not self._open():
            return
        yield from self._read_new()

    def settle(self, *, final: bool = False) -> Iterator[FileNews]:
        """Store what waited for the file's end, as nothing is being written for now.

        With `final`, also store what waited for further lines.
        """
        yield from self._end_at_deletion(self._settle(final=final))

    def _settle(self, *, final: bool) -> Iterator[FileNews]:
        if (reading := self._reading) is None:
            return
        self._read_lines(reading, is_settled=True)
        for step in reading.reader.close(final=final):
            # What is missing at the end may be written next.
            if final or not isinstance(step, SourceProblem):
                reading.importing.add_step(step)
        reading.importing.pause()
        yield from self._make_news(reading)

    def end(self) -> Iterator[FileNews]:
        try:
            if self._reading:
                yield from self._end_at_deletion(self._read_new())
                yield from self.settle(final=True)
        finally:
            self.close()

    def close(self) -> None:
        if self._reading:
            self._reading.lines.file.close()
            self._reading = None

    def _open(self) -> bool:
        """Start at the beginning, if the format can be recognized by now."""
        try:
            importing = TranscriptImport(self.store, self.options, self.path, self.links)
            source = importing.source
            for found in FORMATS.values():
                if found.begin_reading and found.recognizes(source):
                    importing.report.format = found.name
                    reader = found.begin_reading(source)
                    lines = LineFile(self.path.open("rb"), source.longest)
                    self._reading = _Reading(lines, reader, importing)
                    return True
        except OSError:
            pass
        return False

    def _end_at_deletion(self, news: Iterator[FileNews]) -> Iterator[FileNews]:
        """Yield the news until the session is deleted; later lines do not bring it back."""
        if self.is_deleted:
            return
        try:
            yield from news
        except NotFoundError as error:
            self.is_deleted = True
            if reading := self._reading:
                reading.importing.report.errors.append(f"{reading.importing.report.path}: {error}")
                yield from self._make_news(reading)

    def _read_new(self) -> Iterator[FileNews]:
        reading = self._reading
        assert reading is not None, "it was opened"
        reading.importing.report.complete = False
        self._read_lines(reading)
        reading.importing.flush()
        yield from self._make_news(reading)

    def _read_lines(self, reading: _Reading, *, is_settled: bool = False) -> None:
        """Read the lines that are complete by now; a settled file's last one may lack its end."""
        importing = reading.importing
        keep = importing.keeper.add_line if importing.keeper else None
        accepts = _is_whole if is_settled else None
        for line in importing.source.read_from(reading.lines, accepts, keep):
            for step in reading.reader.read(line):
                importing.add_step(step)
        reading.ends = _read_ends(reading.lines)

    def _make_news(self, reading: _Reading) -> Iterator[FileNews]:
        report = reading.importing.report
        now = (report.entries, report.added, len(report.errors))
        entries, added, errors = (
            at - told for at, told in zip(now, reading.reported_counts, strict=True)
        )
        if not (added or errors):
            return
        yield FileNews(
            path=report.path,
            format=report.format or "",
            sessions=tuple(report.sessions),
            entries=entries,
            added=added,
            errors=tuple(report.errors[len(report.errors) - errors :]),
            again=self.is_reread,
        )
        reading.reported_counts = now
        self.is_reread = False


def _is_whole(line: SourceLine | None) -> bool:
    """Return whether a last line without an end is a whole object."""
    return line is not None and isinstance(line.value, dict)


def _read_ends(lines: LineFile) -> tuple[bytes, bytes]:
    file, offset = lines.file, lines.offset
    file.seek(0)
    head = file.read(min(_COMPARED_BYTES, offset))
    file.seek(max(0, offset - _COMPARED_BYTES))
    tail = file.read(min(_COMPARED_BYTES, offset))
    return blake2b(head).digest(), blake2b(tail).digest()

"""Reads one transcript line by line while it is being written."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from ...storage.event_log.source_segments import SourceKeeper
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.format import LineReader
from ...transcripts.formats.json_lines import MAX_LINE_BYTES, SourceLine, parse_line
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.formats.steps import SourceProblem
from ...transcripts.reports import FileReport
from ..importing.file_import import ImportOptions, make_redactor, make_source_name
from ..importing.transcript_import import SubAgentLinks, TranscriptImport
from ..sessions.session_store import SessionStore

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
    file: BinaryIO
    source: TranscriptSource
    reader: LineReader
    transcript_import: TranscriptImport
    keeper: SourceKeeper | None
    number: int = 0
    offset: int = 0
    is_inside_line: bool = False
    """Whether the last line that was read had no newline yet."""
    ends: tuple[bytes, bytes] = (b"", b"")
    """Hashes of both ends of what was read."""
    reported_counts: tuple[int, int, int] = (0, 0, 0)
    """How many entries, blocks and errors were reported."""


@dataclass
class LiveFile:
    """A file and its reader; append keys keep rewritten files from being stored twice."""

    store: SessionStore
    path: Path
    options: ImportOptions = field(default_factory=ImportOptions)
    links: SubAgentLinks = field(default_factory=SubAgentLinks)
    is_reread: bool = False
    _reading: _Reading | None = None

    @property
    def report(self) -> FileReport | None:
        """The result since the file was opened; None if it cannot be followed."""
        return self._reading.transcript_import.report if self._reading else None

    def advance(self) -> Iterator[FileNews]:
        """Read what was written since the last call."""
        try:
            status = self.path.stat()
        except OSError:
            yield from self.end()  # it is gone; read what was written before
            return
        if reading := self._reading:
            known = os.fstat(reading.file.fileno())
            if (known.st_dev, known.st_ino) != (status.st_dev, status.st_ino):
                yield from self.end()  # another file has its name
                self.is_reread = True
            elif _read_ends(reading) != reading.ends:
                self.close()
                self.is_reread = True
        if self._reading is None and not self._open():
            return
        yield from self._read_new()

    def settle(self, *, final: bool = False) -> Iterator[FileNews]:
        """Store what waited for the file's end, as nothing is being written for now.

        With `final`, also store what waited for further lines.
        """
        if (reading := self._reading) is None:
            return
        if last := _find_unfinished(reading):
            self._take_line(reading, last)
        for step in reading.reader.close(final=final):
            # What is missing at the end may be written next.
            if not isinstance(step, SourceProblem) or step.raw:
                reading.transcript_import.add_step(step)
        reading.transcript_import.pause()
        yield from self._make_news(reading)

    def end(self) -> Iterator[FileNews]:
        try:
            if self._reading:
                yield from self._read_new()
                yield from self.settle(final=True)
        finally:
            self.close()

    def close(self) -> None:
        if self._reading:
            self._reading.file.close()
            self._reading = None

    def _open(self) -> bool:
        """Start at the beginning, if the format can be recognized by now."""
        try:
            file = self.path.open("rb")
        except OSError:
            return False
        with ExitStack() as opened:
            opened.enter_context(file)
            redactor = make_redactor(self.path) if self.options.redacts else None
            source = TranscriptSource(self.path, redact=redactor)
            try:
                for found in FORMATS.values():
                    if found.begin_reading and found.recognizes(source):
                        reader = found.begin_reading(source)
                        break
                else:
                    return False
            except OSError:
                return False
            report = FileReport(path=str(self.path), format=found.name)
            if redactor:
                report.path, report.redacted = redactor.redact_text(report.path), redactor.found
            place = make_source_name(self.path, redactor)
            keeper = SourceKeeper() if self.options.keeps_sources else None
            namespace = self.options.target_namespace
            importing = TranscriptImport(
                self.store, namespace, place, report, self.links, keeper=keeper
            )
            self._reading = _Reading(file, source, reader, importing, keeper)
            opened.pop_all()  # it stays open until `close`
        return True

    def _read_new(self) -> Iterator[FileNews]:
        reading = self._reading
        assert reading is not None, "it was opened"
        reading.transcript_import.report.complete = False
        for line in _whole_lines(reading):
            self._take_line(reading, line)
        reading.transcript_import.flush()
        reading.ends = _read_ends(reading)
        yield from self._make_news(reading)

    def _take_line(self, reading: _Reading, line: SourceLine) -> None:
        redacted = reading.source.redact_line(line)
        if reading.source.redact and reading.keeper:
            reading.keeper.add_line(line.number, redacted.raw + b"\n")
        for step in reading.reader.read(redacted):
            reading.transcript_import.add_step(step)

    def _make_news(self, reading: _Reading) -> Iterator[FileNews]:
        report = reading.transcript_import.report
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


def _whole_lines(reading: _Reading) -> Iterator[SourceLine]:
    """Yield the lines that are complete by now; a partial line waits."""
    file = reading.file
    file.seek(reading.offset)
    while raw := file.readline(MAX_LINE_BYTES + 1):
        end = reading.offset + len(raw)
        is_long = len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n")
        if is_long:
            end = _find_line_end(file, end)
        if end == 0 or not (is_long or raw.endswith(b"\n")):
            return
        start, reading.offset = reading.offset, end
        reading.number += not reading.is_inside_line
        reading.is_inside_line = False
        _keep_from(reading, start)
        if is_long:
            problem = f"longer than {MAX_LINE_BYTES:,} bytes"
            yield SourceLine(reading.number, end, problem=problem)
        elif body := _strip_line(raw, reading.number):
            yield parse_line(body, reading.number, end)
        file.seek(reading.offset)


def _find_unfinished(reading: _Reading) -> SourceLine | None:
    """Return the last line if it is a whole object that lacks only its newline."""
    reading.file.seek(reading.offset)
    raw = reading.file.read(MAX_LINE_BYTES)
    body = _strip_line(raw, reading.number + 1)
    if not body.endswith(b"}") or b"\n" in body:
        return None
    line = parse_line(body, reading.number + 1, reading.offset + len(raw))
    if line.problem or not isinstance(line.value, dict):
        return None
    reading.number += not reading.is_inside_line
    # The newline may have been written since the last look.
    start, reading.offset = reading.offset, line.end
    reading.is_inside_line = not raw.endswith(b"\n")
    _keep_from(reading, start)
    reading.ends = _read_ends(reading)
    return line


def _keep_from(reading: _Reading, start: int) -> None:
    """Keep what was read of the newest line; a redacted one is kept once it is redacted."""
    if reading.source.redact is None and reading.keeper:
        reading.file.seek(start)
        reading.keeper.add_line(reading.number, reading.file.read(reading.offset - start))


def _strip_line(raw: bytes, number: int) -> bytes:
    return raw.removeprefix(BOM_UTF8).strip() if number == 1 else raw.strip()


def _find_line_end(file: BinaryIO, end: int) -> int:
    """Return the end of an overlong line, 0 if it has no end yet."""
    while raw := file.readline(1 << 20):
        end += len(raw)
        if raw.endswith(b"\n"):
            return end
    return 0


def _read_ends(reading: _Reading) -> tuple[bytes, bytes]:
    file, offset = reading.file, reading.offset
    file.seek(0)
    head = file.read(min(_COMPARED_BYTES, offset))
    file.seek(max(0, offset - _COMPARED_BYTES))
    tail = file.read(min(_COMPARED_BYTES, offset))
    return blake2b(head).digest(), blake2b(tail).digest()

"""Imports one transcript: recognizes its format, stores what is new, and reports the result."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from eventsourcing.persistence import PersistenceError

from ....domain.errors import CutbankError, StorageError
from ...storage.event_log.stored_row import ImportRow
from ...transcripts.formats.catalog import recognize_format
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..archive.packing import is_gzip
from ..archive.restoring import restore_archive
from ..sessions.session_store import SessionStore
from .transcript_import import SubAgentLinks, TranscriptImport

READER_VERSION = 1
"""To be raised when a reader takes more from the same file than before."""


def make_file_stamp(path: Path, *, redacts: bool) -> str:
    """Return a hash of a file's size, modification time and inode, or of all files of a folder.

    Raises OSError if it cannot be read.
    """
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    digest = blake2b(digest_size=16)
    for file in files:
        status = file.stat()
        # Without the absolute path, which is stored separately and can be spelled in many ways.
        told = (str(file.relative_to(path)), status.st_size, status.st_mtime_ns, status.st_ino)
        digest.update(repr(told).encode("utf-8", "surrogatepass"))
    # A first import with redaction must not count as done.
    return f"{READER_VERSION}{'r' if redacts else ''}:{digest.hexdigest()}"


if TYPE_CHECKING:
    from ...transcripts.redaction.redactor import Redactor

UNCHANGED = "unchanged"
NOT_A_TRANSCRIPT = "not a transcript"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    namespace: str | None = None
    """Where sessions go; None: to `default`, and those of an archive to their old namespace."""
    redacts: bool = False
    """Whether to replace secrets before anything is stored."""

    @property
    def target_namespace(self) -> str:
        return self.namespace or "default"


@dataclass(frozen=True, slots=True)
class WantedFile:
    path: Path
    is_named: bool = True
    """Whether the user named it; a file from a folder may be no transcript."""


@dataclass(slots=True)
class FileImport:
    """The import of one file; faults in it are reported, and the rest is imported."""

    store: SessionStore
    manner: ImportOptions
    file: WantedFile
    links: SubAgentLinks = field(default_factory=SubAgentLinks)
    """Carries links from calls to sub-agents between files."""
    report_bytes: Callable[[int], None] | None = None
    unsettled_row: ImportRow | None = None
    """The row that marks the file as complete, to be stored once its sub-agents are."""

    def run(self) -> FileReport:
        """Import the file. Raises database errors; the file's own faults are in the report."""
        path = self.file.path
        redactor = make_redactor(path) if self.manner.redacts else None
        report = FileReport(path=redactor.redact_text(str(path)) if redactor else str(path))
        try:
            report = self._import_transcript(report, redactor)
        except OSError as error:
            report.errors.append(f"{report.path}: cannot be read: {error.strerror or error}")
        except (StorageError, PersistenceError, sqlite3.Error):
            raise
        except Exception as error:  # noqa: BLE001 - one file's fault must not end other imports
            kind = "" if isinstance(error, CutbankError) else f"{type(error).__name__}: "
            wrong = " ".join(f"{kind}{error}".split())
            report.errors.append(f"{report.path}: reading stopped: {wrong[:200]}")
        if redactor:
            report.redacted = redactor.found
        return report

    def _import_transcript(self, report: FileReport, redactor: "Redactor | None") -> FileReport:
        path = self.file.path
        source = TranscriptSource(path, redact=redactor)
        report.bytes = source.size
        stamp = make_file_stamp(path, redacts=self.manner.redacts)
        if is_gzip(path):
            return self._restore(report)
        found = recognize_format(source)
        if found is None:
            self._report_unknown(report)
            return report
        report.format = found.name
        importing = TranscriptImport(
            self.store,
            self.manner.target_namespace,
            make_source_name(path, redactor),
            report,
            heard=self.report_bytes,
            links=self.links,
            stamp=stamp,
        )
        try:
            for step in found.read(source):
                importing.add_step(step)
            importing.finish()
        except OSError as error:
            report.errors.append(f"{report.path}: reading stopped: {error.strerror or error}")
        finally:
            if not report.complete:
                # Keep what was read before the error, with its progress.
                importing.flush()
        self.unsettled_row = importing.unsettled
        return report

    def _restore(self, report: FileReport) -> FileReport:
        if self.manner.redacts:
            # An archive's events are restored unchanged or not at all.
            reason = "nothing can be left out of an archive: import it without --redact"
            report.errors.append(f"{report.path}: {reason}")
            return report
        namespace, size = self.manner.namespace, report.bytes
        found = restore_archive(
            self.store, self.file.path, namespace=namespace, heard=self.report_bytes
        )
        found.bytes = size
        return found

    def _report_unknown(self, report: FileReport) -> None:
        path = self.file.path
        if self.file.is_named or path.suffix == ".jsonl":
            report.errors.append(f"{report.path}: no known transcript format; nothing was imported")
        else:
            # Settings, notes and the like share the endings and folders of transcripts.
            report.passed = NOT_A_TRANSCRIPT


def report_unchanged(store: SessionStore, manner: ImportOptions, path: Path) -> FileReport | None:
    """Return the report of an unchanged file that is already imported; None for any other."""
    try:
        stamp = make_file_stamp(path, redacts=manner.redacts)
        redactor = make_redactor(path) if manner.redacts else None
        source, size = make_source_name(path, redactor), TranscriptSource(path).size
    except OSError:
        return None  # the import reports it
    row = store.events.recorder.select_import(manner.target_namespace, source)
    if not (row and row.complete and row.stamp == stamp):
        return None
    sessions = [row.session] if row.session else []
    shown = redactor.redact_text(str(path)) if redactor else str(path)
    return FileReport(shown, row.format, size, UNCHANGED, sessions=sessions, complete=True)


def make_redactor(path: Path) -> "Redactor":
    """Return the redactor for one file. Raises ImportFileError if the extra is not installed."""
    from ...transcripts.redaction.redactor import Redactor  # noqa: PLC0415 - needs the extra

    return Redactor(str(path))


def make_source_name(path: Path, redactor: "Redactor | None") -> str:
    """Return the name under which an import's progress is stored."""
    place = str(path.resolve())
    return redactor.redact_text(place) if redactor else place

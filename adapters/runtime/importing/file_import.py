"""Imports one transcript: recognizes its format, stores what is new, and reports the result."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from eventsourcing.persistence import PersistenceError

from ....domain.errors import CutbankError, StorageError
from ...storage.event_log.source_segments import SourceKeeper
from ...transcripts.formats.catalog import recognize_format
from ...transcripts.formats.source import TranscriptSource
from ...transcripts.reports import FileReport
from ..archive.archives import import_database, is_database
from ..sessions.session_store import SessionStore
from .transcript_import import SubAgentLinks, TranscriptImport

if TYPE_CHECKING:
    from ...transcripts.redaction.redactor import Redactor

READER_VERSION = 2
"""To be raised when a reader takes more from the same file than before."""


UNCHANGED = "unchanged"
NOT_A_TRANSCRIPT = "not a transcript"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    namespace: str | None = None
    """Where sessions go; None: to `default`, and those of a database to their old namespace."""
    redacts: bool = False
    """Whether to replace secrets before anything is stored."""
    keeps_sources: bool = True
    """Whether to keep the bytes of each file, without its secrets if it is redacted."""

    @property
    def target_namespace(self) -> str:
        return self.namespace or "default"


DEFAULT_OPTIONS = ImportOptions()


def make_file_stamp(path: Path, options: ImportOptions) -> str:
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
    # A first import with redaction, or without the source, must not count as done.
    manner = f"{'r' * options.redacts}{'n' * (not options.keeps_sources)}"
    return f"{READER_VERSION}{manner}:{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class WantedFile:
    path: Path
    is_named: bool = True
    """Whether the user named it; a file from a folder may be no transcript."""


def import_file(
    store: SessionStore,
    options: ImportOptions,
    file: WantedFile,
    links: SubAgentLinks,
    report_bytes: Callable[[int], None] | None = None,
) -> FileReport:
    """Import one file; faults in it are reported, and the rest is imported.

    `links` carries links from calls to sub-agents between files. Raises database errors.
    """
    path = file.path
    redactor = make_redactor(path) if options.redacts else None
    report = FileReport(path=redactor.redact_text(str(path)) if redactor else str(path))
    try:
        source = TranscriptSource(path, redact=redactor)
        report.bytes = source.size
        stamp = make_file_stamp(path, options)
        if is_database(path) and options.redacts:
            # Its events are stored unchanged or not at all.
            wrong = "nothing can be left out of a database: import it without --redact"
            report.errors.append(f"{report.path}: {wrong}")
        elif is_database(path):
            space = options.namespace
            import_database(store, path, report, namespace=space, report_bytes=report_bytes)
        elif found := recognize_format(source):
            report.format = found.name
            name = make_source_name(path, redactor)
            keeper = SourceKeeper() if options.keeps_sources else None
            importing = TranscriptImport(
                store, options.target_namespace, name, report, links, report_bytes, stamp, keeper
            )
            if keeper and found.begin_reading:
                source.keep = keeper.add_line
            elif keeper:
                keeper.add_all(source.read_whole())
            importing.run(found.read(source))
            if not found.begin_reading and make_file_stamp(path, options) != stamp:
                report.errors.append(f"{report.path}: changed while it was read: import it again")
        elif file.is_named or path.suffix == ".jsonl":
            report.errors.append(f"{report.path}: no known transcript format; nothing was imported")
        else:
            # Settings, notes and the like share the endings and folders of transcripts.
            report.passed = NOT_A_TRANSCRIPT
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


def report_unchanged(store: SessionStore, options: ImportOptions, path: Path) -> FileReport | None:
    """Return the report of an unchanged file that is already imported; None for any other."""
    try:
        stamp = make_file_stamp(path, options)
        redactor = make_redactor(path) if options.redacts else None
        source, size = make_source_name(path, redactor), TranscriptSource(path).size
    except OSError:
        return None  # the import reports it
    row = store.events.recorder.select_import(options.target_namespace, source)
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

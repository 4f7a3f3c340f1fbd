"""Imports one transcript: recognizes its format, stores what is new, and reports the result."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from eventsourcing.persistence import PersistenceError

from ....domain.errors import CutbankError, StorageError
from ...transcripts.formats.catalog import recognize_format
from ...transcripts.reports import FileReport
from ..archives import import_database, is_database
from ..sessions.session_store import SessionStore
from .transcript_import import ImportOptions, SubAgentLinks, TranscriptImport

READER_VERSION = 2
"""To be raised when a reader takes more from the same file than before."""


UNCHANGED = "unchanged"
NOT_A_TRANSCRIPT = "not a transcript"


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
    name: str | None = None
    """The name under which it is stored, if it is a copy that lies elsewhere."""


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
    importing = TranscriptImport(store, options, path, links, report_bytes, name=file.name)
    report = importing.report
    try:
        _import_path(importing, options, file)
    except OSError as error:
        report.errors.append(f"{report.path}: cannot be read: {error.strerror or error}")
    except (StorageError, PersistenceError, sqlite3.Error):
        raise
    except Exception as error:  # noqa: BLE001 - one file's fault must not end other imports
        kind = "" if isinstance(error, CutbankError) else f"{type(error).__name__}: "
        wrong = " ".join(f"{kind}{error}".split())
        report.errors.append(f"{report.path}: reading stopped: {wrong[:200]}")
    return report


def _import_path(importing: TranscriptImport, options: ImportOptions, file: WantedFile) -> None:
    path, source, report = file.path, importing.source, importing.report
    report.bytes = source.size
    importing.stamp = make_file_stamp(path, options)
    if is_database(path) and options.redacts:
        # Its events are stored unchanged or not at all.
        wrong = "nothing can be left out of a database: import it without --redact"
        report.errors.append(f"{report.path}: {wrong}")
    elif is_database(path):
        space, heard = options.namespace, importing.report_bytes
        import_database(importing.store, path, report, namespace=space, report_bytes=heard)
    elif found := recognize_format(source):
        report.format = found.name
        if importing.keeper and found.begin_reading:
            source.keep = importing.keeper.add_line
        elif importing.keeper:
            importing.keeper.add_all(source.read_whole())
        importing.run(found.read(source))
        if not found.begin_reading and make_file_stamp(path, options) != importing.stamp:
            report.errors.append(f"{report.path}: changed while it was read: import it again")
    elif file.is_named or path.suffix == ".jsonl":
        report.errors.append(f"{report.path}: no known transcript format; nothing was imported")
    else:
        # Settings, notes and the like share the endings and folders of transcripts.
        report.passed = NOT_A_TRANSCRIPT


def report_unchanged(store: SessionStore, options: ImportOptions, path: Path) -> FileReport | None:
    """Return the report of an unchanged file that is already imported; None for any other."""
    importing = TranscriptImport(store, options, path, SubAgentLinks())
    report, row = importing.report, importing.row
    try:
        stamp, report.bytes = make_file_stamp(path, options), importing.source.size
    except OSError:
        return None  # the import reports it
    if not (row and row.complete and row.stamp == stamp):
        return None
    report.format, report.passed, report.complete = row.format, UNCHANGED, True
    report.sessions = [row.session] if row.session else []
    return report

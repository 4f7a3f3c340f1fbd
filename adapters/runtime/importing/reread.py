"""Reads a session's kept source with today's reader, and says what it sees otherwise."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ....domain.errors import ImportFileError, InvalidSettingError
from ...storage.event_log.log_tables import ImportRow
from ...storage.event_log.storage_errors import translate_storage_errors
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.outgoing import KeptSource
from ..kept_sources import open_kept_source, write_kept_file
from ..sessions.session_store import SessionStore, open_store
from ..sessions.stored_session import StoredSession
from .file_import import WantedFile
from .importer import import_files
from .transcript_import import ImportOptions

_Entry = tuple[int, int | None]
"""A file's number and a line in it; None for what has no line."""


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block as one of the two readings has it."""

    handle: str
    kind: str
    characters: int
    retracted: bool


@dataclass(frozen=True, slots=True)
class ChangedEntry:
    """A line of the source of which the two readings make different blocks."""

    session: str
    file: str
    line: int | None
    before: tuple[ReadBlock, ...]
    now: tuple[ReadBlock, ...]


@dataclass(slots=True)
class RereadReport:
    """What today's reader makes of a kept source; the same fields as in `reread --json`."""

    session: str
    namespace: str
    into: str | None
    """The namespace that holds the new sessions, under the same names; None if none was made."""
    files: list[str]
    sessions: list[str] = field(default_factory=list)
    blocks: int = 0
    """The blocks that both readings have alike."""
    changed: list[ChangedEntry] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """What could not be read, one line each."""


def reread(session: StoredSession, *, into: str | None = None) -> RereadReport:
    """Read the files that a session was imported from once more, as they were kept.

    What the reader of today makes of each line is compared with what is stored; the session stays
    as it is. With `into`, the new reading is stored in that namespace, under the same name. Raises
    ImportFileError if the files were not kept, or the namespace has such a session already, and
    StorageError if what was kept is damaged.
    """
    rows = session.log.events.recorder.select_imports(session.namespace, session.key)
    if not rows:
        raise ImportFileError(
            f"{session.key} has no source of its own: it was not imported, or its file begins with"
            " another session, which can be read again"
        )
    if lost := [row.source for row in rows if not row.segments]:
        raise ImportFileError(f"{lost[0]} was imported without keeping it: it cannot be read again")
    if into == session.namespace:
        raise InvalidSettingError(f"{into} holds {session.key} itself: name another namespace")
    report = RereadReport(session.key, session.namespace, into, [row.source for row in rows])
    own = SessionStore(session.log.context)
    if into is None:
        with open_store(":memory:") as store:
            _compare_reading(own, store, session.namespace, rows, report)
    else:
        with translate_storage_errors(own.name):
            taken = own.events.load_session(into, session.key)
        if taken is not None:
            raise ImportFileError(f"{into} holds a session {session.key} already: name another one")
        _compare_reading(own, own, into, rows, report)
    return report


def _compare_reading(
    own: SessionStore,
    store: SessionStore,
    namespace: str,
    rows: list[ImportRow],
    report: RereadReport,
) -> None:
    """Import the kept files into a namespace, and add to the report how its sessions differ."""
    with TemporaryDirectory() as folder:
        files: list[WantedFile] = []
        for number, row in enumerate(rows):
            source = open_kept_source(own.events.recorder, [row])
            beside = Path(folder, str(number))
            path = write_kept_file(source, FORMATS[row.format], row.source, beside)
            files.append(WantedFile(path, name=row.source))
        for one in import_files(store, files, ImportOptions(namespace)):
            report.errors += one.errors
            report.sessions += [key for key in one.sessions if key not in report.sessions]
    for key in report.sessions:
        now = store.session(key, namespace=namespace, create=False)
        known = own.events.load_session(report.namespace, key) is not None
        old = own.session(key, namespace=report.namespace, create=False) if known else None
        _compare_sessions(old, now, rows, report)


def _compare_sessions(
    old: StoredSession | None, now: StoredSession, rows: list[ImportRow], report: RereadReport
) -> None:
    before = _group_blocks(old, rows) if old else {}
    after = _group_blocks(now, rows)
    for entry in sorted(before.keys() | after.keys(), key=lambda one: (one[0], one[1] or 0)):
        first, second = before.get(entry, []), after.get(entry, [])
        if [content for content, _ in first] == [content for content, _ in second]:
            report.blocks += len(second)
            continue
        file, line = entry
        sides = [tuple(block for _, block in side) for side in (first, second)]
        report.changed.append(ChangedEntry(now.key, rows[file].source, line, *sides))


def _group_blocks(
    session: StoredSession, rows: list[ImportRow]
) -> dict[_Entry, list[tuple[int, ReadBlock]]]:
    """Return the imported blocks of each line, each with a hash of all that it says."""
    source: KeptSource = open_kept_source(session.log.events.recorder, rows)
    entries = defaultdict[_Entry, list[tuple[int, ReadBlock]]](list)
    file = 0
    retracted = session.log.reader().read_retracted(session.position)
    for found in session.blocks(retracted=True):
        block, is_retracted = found.block, found.position in retracted
        if (origin := block.origin) is None:
            continue  # it was added here
        file = source.files.get(origin.segment or "", file)
        text = block.model_dump_json(exclude={"origin"})
        shown = ReadBlock(found.handle, str(block.kind), len(text), is_retracted)
        entries[file, origin.line].append((hash((text, is_retracted)), shown))
    return entries

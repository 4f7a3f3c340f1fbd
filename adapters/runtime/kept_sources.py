"""Finds the files that a session was imported from, and writes them again."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from ...domain.errors import ExportError
from ..storage.event_log.log_reader import LogReader
from ..storage.event_log.log_tables import ImportRow
from ..storage.event_log.source_segments import list_digests, read_segments
from ..storage.private_files import make_folder, open_new
from ..transcripts.formats.format import Format
from ..transcripts.formats.outgoing import KeptSource
from ..transcripts.formats.source import TranscriptSource, unpack_files
from ..transcripts.formats.steps import SessionStart
from .sessions.stored_session import StoredSession


def find_kept_source(session: StoredSession, found: Format) -> KeptSource | None:
    """Return the files that were imported into the session; None if they are not kept.

    Raises ExportError if one is damaged.
    """
    rows = session.log.events.recorder.select_imports(session.namespace, session.key)
    kept = [row for row in rows if row.format == found.name and row.segments]
    if len(kept) < len(rows) or not kept:
        return None
    if not found.begin_reading:  # a document that was saved again holds what it held before
        kept = [max(kept, key=lambda row: row.bytes)]
    source = open_kept_source(session.log.events.recorder, kept)
    is_shared = not found.begin_reading and _count_sessions(source, found, kept[0].source) > 1
    return None if is_shared else source


def open_kept_source(recorder: LogReader, rows: Sequence[ImportRow]) -> KeptSource:
    def read_files() -> Iterator[Iterator[bytes]]:
        for row in rows:
            yield read_segments(list_digests(row.segments), recorder.select_segment)

    files = {
        digest.hex(): index
        for index, row in enumerate(rows)
        for digest in list_digests(row.segments)
    }
    return KeptSource(files, read_files)


def write_kept_file(source: KeptSource, found: Format, name: str, folder: Path) -> Path:
    """Write the only file of a kept source into a folder; return its path.

    It gets the name that it had, and so does the folder around it: some formats read them.
    """
    known = PurePath(name)
    path = folder.joinpath(*(part for part in known.parts[-2:] if part not in {known.anchor, ".."}))
    make_folder(path.parent)
    if found.is_folder:
        write_folder(source, path)
    else:
        with open_new(path) as out:
            out.writelines(piece for pieces in source.read_files() for piece in pieces)
    return path


def write_folder(source: KeptSource, path: Path) -> int:
    """Write a kept source as a new folder; return the bytes written."""
    make_folder(path)
    written = 0
    for name, content in unpack_files(source.read_whole()):
        file_path = path / name
        if not file_path.resolve().is_relative_to(path.resolve()):
            raise ExportError(f"{name!r} would lie outside {path}")
        make_folder(file_path.parent)
        with open_new(file_path) as out:
            written += out.write(content)
    return written


def _count_sessions(source: KeptSource, found: Format, name: str) -> int:
    """Return how many sessions the source of a document holds, without forks and sub-agents."""
    with TemporaryDirectory() as folder:
        path = write_kept_file(source, found, name, Path(folder))
        starts = [
            step for step in found.read(TranscriptSource(path)) if isinstance(step, SessionStart)
        ]
    return len({one.key for one in starts if not (one.parent_key or one.fork_of)})

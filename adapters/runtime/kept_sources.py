"""Finds the files that sessions were imported from, writes them again, and searches them.

They hold what no block holds, too.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from ...domain.errors import ExportError, InvalidSettingError, NotFoundError
from ...projections.search_texts import SNIPPET_CHARS, Snippet
from ..storage.event_log.log_reader import LogReader
from ..storage.event_log.log_tables import ImportRow
from ..storage.event_log.source_segments import list_digests, read_segments
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.private_files import make_folder, open_new
from ..transcripts.formats.catalog import FORMATS
from ..transcripts.formats.format import Format
from ..transcripts.formats.outgoing import KeptSource
from ..transcripts.formats.source import TranscriptSource, unpack_files
from ..transcripts.formats.steps import SessionStart
from .sessions.session_store import SessionStore
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


_AHEAD_BYTES = 60
"""The bytes of a line that are shown before the match."""


@dataclass(frozen=True, slots=True)
class SourceHit:
    """A line of a kept source that holds the text."""

    namespace: str
    session: str | None
    """The first session of the file; None if there is no session in it."""
    file: str
    """The path that was imported; in a folder, of the file in it."""
    line: int
    snippet: Snippet


@dataclass(frozen=True, slots=True)
class KeptLine:
    file: str
    text: bytes
    """The line without its end."""


def search_sources(
    store: SessionStore,
    text: str,
    *,
    session: str | None = None,
    namespace: str | None = None,
    limit: int = 20,
) -> list[SourceHit]:
    """Find a text in the files that were imported, as they were kept; their own order.

    Reads all of them. ASCII letters match in either case, and a text is found as JSON writes it,
    too. `session` searches one of `namespace`, or else of the default one. Raises NotFoundError
    for a session that does not exist, InvalidSettingError for an empty text, and StorageError if
    what was kept is damaged.
    """
    if not text.strip():
        raise InvalidSettingError("nothing to search: give a text")
    if session is not None:
        namespace = namespace or "default"
        store.session(session, namespace=namespace, create=False)
    with translate_storage_errors(store.name):
        rows = store.events.recorder.select_imports(namespace, session)
        found = _search_rows(store.events.recorder, rows, _encode_needles(text))
        return list(islice(found, limit))


def read_kept_lines(session: StoredSession, line: int) -> list[KeptLine]:
    """Return that line of each file that the session was imported from, as it was kept.

    Raises NotFoundError if no file is kept, or none has so many lines.
    """
    recorder = session.log.events.recorder
    rows = recorder.select_imports(session.namespace, session.key)
    with translate_storage_errors(session.log.context.name):
        found = [
            KeptLine(file, text.removesuffix(b"\r"))
            for row in rows
            for file, pieces in _open_files(recorder, row)
            for text in islice(_iter_lines(pieces), line - 1, line)
        ]
    if not found:
        kept = any(row.segments for row in rows)
        why = f"has no line {line}" if kept else "is not kept"
        raise NotFoundError(f"{session.key}: what it was imported from {why}")
    return found


def _encode_needles(text: str) -> set[bytes]:
    """Return the text in lower case, as it stands and as JSON writes it."""
    spellings = {text, *(json.dumps(text, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False))}
    return {spelling.encode("utf-8", "surrogatepass").lower() for spelling in spellings}


def _search_rows(
    recorder: LogReader, rows: Iterable[ImportRow], needles: set[bytes]
) -> Iterator[SourceHit]:
    for row in rows:
        for file, pieces in _open_files(recorder, row):
            for number, line, span in find_lines(pieces, needles):
                snippet = _make_snippet(line, span)
                yield SourceHit(row.namespace, row.session, file, number, snippet)


def _open_files(recorder: LogReader, row: ImportRow) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the path of each file that an import kept, and its bytes in pieces."""
    source = open_kept_source(recorder, [row])
    known = FORMATS.get(row.format)
    if row.segments and known and known.is_folder:
        for name, content in unpack_files(source.read_whole()):
            yield f"{row.source}/{name}", [content]
    else:
        yield from ((row.source, pieces) for pieces in source.read_files())


def _iter_whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield whole lines, many at a time."""
    begun: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join((*begun, piece[:end]))
            begun = []
        begun.append(piece[end:])
    if rest := b"".join(begun):
        yield rest


def _iter_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for lines in _iter_whole_lines(pieces):
        yield from lines.removesuffix(b"\n").split(b"\n")


def find_lines(
    pieces: Iterable[bytes], needles: set[bytes]
) -> Iterator[tuple[int, bytes, tuple[int, int]]]:
    """Yield each line that holds one of the texts: its number, itself, and the first match.

    The texts are in lower case. Bytes of lines that were cut anywhere may be given.
    """
    before = 0
    for lines in _iter_whole_lines(pieces):
        lowered = lines.lower()
        at, number = 0, before + 1
        while found := _find_first(lowered, needles, at):
            start = lines.rfind(b"\n", 0, found[0]) + 1
            end = lines.find(b"\n", found[0])
            end = len(lines) if end < 0 else end
            number += lines.count(b"\n", at, start)
            yield number, lines[start:end], (found[0] - start, found[1] - start)
            at = end
        before += lines.count(b"\n")


def _find_first(lowered: bytes, needles: set[bytes], at: int) -> tuple[int, int] | None:
    starts = ((lowered.find(needle, at), needle) for needle in needles)
    found = [(start, start + len(needle)) for start, needle in starts if start >= 0]
    return min(found, default=None)


def _make_snippet(line: bytes, span: tuple[int, int]) -> Snippet:
    begin = max(0, span[0] - _AHEAD_BYTES)
    parts = (line[begin : span[0]], line[slice(*span)], line[span[1] : begin + SNIPPET_CHARS])
    ahead, match, behind = (part.decode(errors="replace") for part in parts)
    ahead = f"…{ahead}" if begin else ahead
    return Snippet(f"{ahead}{match}{behind}", ((len(ahead), len(ahead) + len(match)),))

"""Writes a session in another format: all of its log, or the compacted view of it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ....domain.compaction import MAIN, RECORDED
from ....domain.errors import ExportError
from ...storage.event_log.plain_errors import speaking_plainly
from ...storage.private_files import make_folder, open_new
from ...storage.view_reader import ViewReader
from ...transcripts.formats.catalog import FORMATS
from ...transcripts.formats.format import Format
from ...transcripts.formats.outgoing import Outgoing
from ...transcripts.reports import ExportReport
from ..archive.writer import NAME as ARCHIVE
from ..archive.writer import write_archive
from ..sessions.session_log import list_logs
from ..sessions.stored_session import StoredSession
from .log_parts import log_parts, view_parts
from .new_file import new_file


def export(
    session: StoredSession,
    to: str,
    target: str | Path | BinaryIO,
    *,
    view: bool = False,
    lineage: str = MAIN,
) -> ExportReport:
    """Write a session in the format `to`: its log, or with `view` what a model would be sent now.

    `target` is a new file, a new folder if the format is one of folders, or an open file.
    `cutbank-archive` is the session as it is stored, for another database. The report lists what
    the format cannot hold. Raises ExportError if the format is unknown or read-only, or the target
    exists, and NotFoundError if the session has no such lineage; then nothing is written.
    """
    target = Path(target) if isinstance(target, str) else target
    if to == ARCHIVE:
        if view:
            raise ExportError("an archive holds all of a session: leave out view=True")
        return write_archive([session], target)
    found = writable(to)
    if lineage != RECORDED:  # a source that never compacted has no such lineage
        session.log.check_lineage(lineage)
    with speaking_plainly(session.log.context.name):
        outgoing = outgoing_of(session, view=view, lineage=lineage)
        if isinstance(target, Path):
            written = _write(found, outgoing, target)
        else:
            written = _pour(found, outgoing, target)
    return ExportReport(
        session=session.key,
        format=found.name,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="view" if view else "log",
        lost=dict(outgoing.losses),
    )


def writable(name: str) -> Format:
    """The format of that name. Raises ExportError where nothing can be written in it."""
    found = FORMATS.get(name)
    if found and (found.write or found.write_folder):
        return found
    known = ", ".join(one.name for one in FORMATS.values() if one.write or one.write_folder)
    why = "is only read" if found else "is not known"
    raise ExportError(f"the format {name!r} {why}: choose one of {known}")


def outgoing_of(
    session: StoredSession, *, view: bool = False, lineage: str = MAIN, forks: bool = True
) -> Outgoing:
    """The session as its format's writer is given it."""
    events, namespace, key = session.log.events, session.namespace, session.key
    reader = ViewReader(events, namespace, key, lineage)
    opened = events.opened(namespace, key)
    served = reader.view()
    if view:
        parts = partial(view_parts, served, opened.timestamp)
        viewed = lambda: served  # noqa: E731 - what was read already
    else:
        first = opened.fork.position + 1 if opened.fork and not forks else 1
        parts = partial(log_parts, events, namespace, key, lineage, first)
        viewed = partial(reader.view, None, 0)
    return Outgoing(
        key=key,
        title=session.log.title,
        source=session.log.source,
        parent=session.log.parent,
        opened=opened.timestamp,
        system_prompt=served.system_prompt,
        tools=served.tool_definitions,
        settings=served.request_settings,
        parts=parts,
        viewed=viewed,
        is_view=view,
        forks=tuple(_forks(session)) if forks and not view else (),
        fork=opened.fork,
    )


def _forks(session: StoredSession) -> Iterator[Outgoing]:
    """The branches of the same transcript: their keys begin with the session's own."""
    for log in list_logs(session.log.context, session.namespace):
        if log.key.startswith(f"{session.key}/") and log.forked_from:
            yield outgoing_of(StoredSession(log), forks=False)


def _pour(found: Format, outgoing: Outgoing, out: BinaryIO) -> int:
    if found.write is None:
        raise ExportError(f"{found.name} is a folder of files: name a new folder with --out")
    written = 0
    for piece in found.write(outgoing):
        written += out.write(piece)
    return written


def _write(found: Format, outgoing: Outgoing, target: Path) -> int:
    with new_file(target) as beside:
        if not found.write:
            return _fill(found, outgoing, beside)
        with open_new(beside) as file:
            return _pour(found, outgoing, file)


def _fill(found: Format, outgoing: Outgoing, folder: Path) -> int:
    assert found.write_folder, "the format is one of files or of folders"
    make_folder(folder)
    written = 0
    for name, content in found.write_folder(outgoing):
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()):
            raise ExportError(f"{name!r} would lie outside {folder}")
        make_folder(file.parent)
        with open_new(file) as out:
            written += out.write(content)
    return written

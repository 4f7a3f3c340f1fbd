"""Writes a session in another format: its whole log or its compacted view."""

import json
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ....domain.blocks import AnyBlock, Block, Kind, ToolResult
from ....domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ....domain.compaction_events import BoundaryActivated, CompactionReverted
from ....domain.errors import ExportError
from ....domain.event import Event
from ....domain.ranges import Ranges
from ....domain.session_events import (
    BlockAppended,
    ModelCalled,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....projections.history_view import HistoryView
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.event_log.storage_errors import translate_storage_errors
from ...storage.private_files import make_folder, open_new, open_new_path
from ...storage.view_reader import ViewReader
from ...transcripts.formats.catalog import ARCHIVE_FORMAT, FORMATS
from ...transcripts.formats.format import Format
from ...transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingPart,
    OutgoingSession,
)
from ...transcripts.reports import ExportReport
from ..archive.archives import write_archive
from ..sessions.session_log import list_logs
from ..sessions.stored_session import StoredSession

_AT_ONCE = 500


def read_log_parts(
    events: EventStore, namespace: str, key: str, lineage: str, first: int = 1
) -> Iterator[OutgoingPart]:
    """Yield the session's log from position `first` on, with boundaries where they were served."""
    chain = events.find_session_chain(namespace, key)
    reader = ViewReader(events, namespace, key, lineage)
    head = events.read_head(chain)[0]
    retracted = reader.read_retracted(head)
    served = _find_served(events, events.find_lineage_chain(namespace, key, lineage))
    waiting = [one for one in served if one.effective_from >= first]
    for begin in range(first, head + 1, _AT_ONCE):
        span = Ranges.span(begin, min(begin + _AT_ONCE - 1, head))
        for recorded in events.read(chain, span):
            while waiting and waiting[0].effective_from < recorded.position:
                yield _make_compaction(reader, waiting.pop(0))
            if part := _make_part(recorded.position, recorded.event, retracted):
                yield part
    for activated in waiting:
        yield _make_compaction(reader, activated)


def read_view_parts(view: HistoryView, began: datetime) -> Iterator[OutgoingPart]:
    """Yield the view's boundary, then its blocks as they are shown.

    `began` is the time of blocks whose source has none.
    """
    if view.boundary is not None:
        yield OutgoingCompaction(view.boundary, view.summary, view.boundary.timestamp)
    for entry in view.entries:
        block = entry.block if entry.shown is None else _replace_text(entry.block, entry.shown)
        yield OutgoingBlock(entry.position, entry.turn, began, block)


def _make_part(position: int, event: Event, retracted: Ranges) -> OutgoingPart | None:
    match event:
        case BlockAppended() | ToolCalled() | ToolReturned():
            gone = position in retracted
            return OutgoingBlock(
                position, event.turn, event.timestamp, event.block, is_retracted=gone
            )
        case ToolCallAbandoned(tool_call_id=name, reason=reason, turn=turn):
            answer = ToolResult(tool_call_id=name, content=f"[abandoned: {reason}]", is_error=True)
            return OutgoingBlock(position, turn, event.timestamp, answer, is_cancelled_result=True)
        case ModelCalled():
            return OutgoingCall(position, event)
        case _:
            return None


def _replace_text(block: AnyBlock, shown: str) -> AnyBlock:
    """Return a block with its content replaced by what the view shows."""
    match block:
        case ToolResult():
            return block.model_copy(update={"content": shown, "native": None})
        case Block():
            kind = block.kind if block.kind not in (Kind.IMAGE, Kind.DOCUMENT) else Kind.USER
            return block.model_copy(
                update={"kind": kind, "text": shown, "media": None, "native": None}
            )
        case _:
            arguments = json.dumps({"hidden": shown}, ensure_ascii=False)
            return block.model_copy(update={"arguments": arguments, "native": None})


def _find_served(events: EventStore, chain: Chain) -> list[BoundaryActivated]:
    served: list[BoundaryActivated] = []
    version = events.read_lineage_state(chain)[0] if chain.segments else 0
    for recorded in events.read(chain, Ranges.span(1, version)):
        match recorded.event:
            case BoundaryActivated() as activated:
                served.append(activated)
            case CompactionReverted(boundary=reverted):
                served = [one for one in served if one.boundary != reverted]
    return served


def _make_compaction(reader: ViewReader, activated: BoundaryActivated) -> OutgoingCompaction:
    boundary, summary, _ = reader.read_boundary(activated.boundary)
    return OutgoingCompaction(boundary, summary, activated.timestamp)


def export(
    session: StoredSession,
    to: str,
    target: str | Path | BinaryIO,
    *,
    view: bool = False,
    lineage: str = MAIN_LINEAGE,
) -> ExportReport:
    """Write a session in the format `to`: its log, or with `view` what a model would be sent now.

    `target` is a new file, a new folder if the format is one of folders, or an open file.
    `cutbank-archive` is the session as it is stored, for another database. The report lists what
    the format cannot hold. Raises ExportError if the format is unknown or read-only, or the target
    exists, and NotFoundError if the session has no such lineage; then nothing is written.
    """
    target = Path(target) if isinstance(target, str) else target
    if to == ARCHIVE_FORMAT:
        if view:
            raise ExportError("an archive holds all of a session: leave out view=True")
        return write_archive([session], target)
    found = find_writable_format(to)
    if lineage != RECORDED_LINEAGE:  # a source without compactions has no such lineage
        session.log.check_lineage(lineage)
    with translate_storage_errors(session.log.context.name):
        outgoing = make_outgoing(session, view=view, lineage=lineage)
        if isinstance(target, Path):
            written = _write_file(found, outgoing, target)
        else:
            written = _write_stream(found, outgoing, target)
    return ExportReport(
        session=session.key,
        format=found.name,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="view" if view else "log",
        lost=dict(outgoing.losses),
    )


def find_writable_format(name: str) -> Format:
    """Return the format of that name. Raises ExportError if it is unknown or read-only."""
    found = FORMATS.get(name)
    if found and (found.write or found.write_folder):
        return found
    known = ", ".join(one.name for one in FORMATS.values() if one.write or one.write_folder)
    why = "is only read" if found else "is not known"
    raise ExportError(f"the format {name!r} {why}: choose one of {known}")


def make_outgoing(
    session: StoredSession, *, view: bool = False, lineage: str = MAIN_LINEAGE, forks: bool = True
) -> OutgoingSession:
    events, namespace, key = session.log.events, session.namespace, session.key
    reader = ViewReader(events, namespace, key, lineage)
    opened = events.read_opening(namespace, key)
    served = reader.read_view()
    if view:
        parts = partial(read_view_parts, served, opened.timestamp)
        viewed = lambda: served  # noqa: E731 - it was read already
    else:
        first = opened.fork.position + 1 if opened.fork and not forks else 1
        parts = partial(read_log_parts, events, namespace, key, lineage, first)
        viewed = partial(reader.read_view, None, 0)
    return OutgoingSession(
        key=key,
        title=session.info.title,
        source=session.info.source,
        parent=session.log.parent,
        opened_at=opened.timestamp,
        system_prompt=served.system_prompt,
        tools=served.tool_definitions,
        settings=served.request_settings,
        read_parts=parts,
        load_view=viewed,
        is_view=view,
        forks=tuple(_find_forks(session)) if forks and not view else (),
        fork=opened.fork,
    )


def _find_forks(session: StoredSession) -> Iterator[OutgoingSession]:
    """Yield the branches of the same transcript, whose keys begin with the session's own."""
    for log in list_logs(session.log.context, session.namespace):
        if log.key.startswith(f"{session.key}/") and log.read_opening().fork:
            yield make_outgoing(StoredSession(log), forks=False)


def _write_stream(found: Format, outgoing: OutgoingSession, out: BinaryIO) -> int:
    if found.write is None:
        raise ExportError(f"{found.name} is a folder of files: name a new folder with --out")
    written = 0
    for piece in found.write(outgoing):
        written += out.write(piece)
    return written


def _write_file(found: Format, outgoing: OutgoingSession, target: Path) -> int:
    with open_new_path(target) as beside:
        if not found.write:
            return _write_folder(found, outgoing, beside)
        with open_new(beside) as file:
            return _write_stream(found, outgoing, file)


def _write_folder(found: Format, outgoing: OutgoingSession, folder: Path) -> int:
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

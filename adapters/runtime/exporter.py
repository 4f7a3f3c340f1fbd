"""Writes a session in another format: its whole log or its compacted view."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...domain.blocks import AnyBlock, Block, BlockKind, ToolResult
from ...domain.compaction import MAIN_LINEAGE, RECORDED_LINEAGE
from ...domain.compaction_events import BoundaryActivated, CompactionReverted
from ...domain.errors import ExportError
from ...domain.event import Event
from ...domain.ranges import Ranges
from ...domain.session_events import (
    BlockAppended,
    BlocksRetracted,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    ToolsSet,
)
from ...projections.history_view import HistoryView
from ..storage.event_log.storage_errors import translate_storage_errors
from ..storage.private_files import open_new, open_new_path
from ..storage.view_reader import ViewReader
from ..transcripts.formats.catalog import ARCHIVE_FORMAT, FORMATS
from ..transcripts.formats.format import Format
from ..transcripts.formats.outgoing import (
    KeptSource,
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingPart,
    OutgoingSession,
    is_added,
    is_as_imported,
)
from ..transcripts.formats.steps import SOURCE_RETRACTIONS
from ..transcripts.reports import ExportReport
from .archives import write_archive
from .kept_sources import find_kept_source, write_folder
from .sessions.session_log import SessionLog, list_logs
from .sessions.stored_session import StoredSession

_AT_ONCE = 500


def read_log_parts(log: SessionLog, lineage: str, first: int = 1) -> Iterator[OutgoingPart]:
    """Yield the session's log from position `first` on, with boundaries where they were served."""
    reader, head = log.reader(lineage), log.position
    retractions = reader.read_retractions(head)
    retracted = _join_positions(retractions)
    removed = _find_removed(retractions)
    served = _find_served(reader)
    waiting = [one for one in served if one.effective_from >= first]
    for begin in range(first, head + 1, _AT_ONCE):
        span = Ranges.span(begin, min(begin + _AT_ONCE - 1, head))
        for recorded in log.events.read(reader.chain, span):
            while waiting and waiting[0].effective_from < recorded.position:
                yield _make_compaction(reader, waiting.pop(0))
            if part := _make_part(recorded.position, recorded.event, retracted, removed):
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


def _join_positions(retractions: Iterable[BlocksRetracted]) -> Ranges:
    return Ranges(run for one in retractions for run in one.positions.runs)


def _find_removed(retractions: Iterable[BlocksRetracted]) -> Ranges:
    """Return what was retracted here, and not by the source."""
    return _join_positions(one for one in retractions if one.reason not in SOURCE_RETRACTIONS)


def _make_part(
    position: int, event: Event, retracted: Ranges, removed: Ranges
) -> OutgoingPart | None:
    match event:
        case BlockAppended() | ToolCalled() | ToolReturned():
            return OutgoingBlock(
                position,
                event.turn,
                event.timestamp,
                event.block,
                is_retracted=position in retracted,
                is_removed=position in removed,
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
            kind = (
                block.kind
                if block.kind not in (BlockKind.IMAGE, BlockKind.DOCUMENT)
                else BlockKind.USER
            )
            return block.model_copy(
                update={"kind": kind, "text": shown, "media": None, "native": None}
            )
        case _:
            arguments = json.dumps({"hidden": shown}, ensure_ascii=False)
            return block.model_copy(update={"arguments": arguments, "native": None})


def _find_served(reader: ViewReader) -> list[BoundaryActivated]:
    served: list[BoundaryActivated] = []
    chain, store = reader.lineage_chain, reader.store
    version = store.read_lineage_state(chain)[0] if chain.segments else 0
    for recorded in store.read(chain, Ranges.span(1, version)):
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

    A session is written in the format that it was imported from byte for byte, with what was added
    or retracted since. `target` is a new file, a new folder if the format is one of folders, or an
    open file. `cutbank-archive` is the session as it is stored, for another database. The report
    lists what the format cannot hold. Raises ExportError if the format is unknown or only read, or
    the target exists, and NotFoundError if the session has no such lineage; then nothing is
    written.
    """
    target = Path(target) if isinstance(target, str) else target
    if to == ARCHIVE_FORMAT:
        if view:
            raise ExportError("an archive holds all of a session: leave out view=True")
        return write_archive([session], target)
    found = find_format(to)
    if lineage != RECORDED_LINEAGE:  # a source without compactions has no such lineage
        session.log.check_lineage(lineage)
    with translate_storage_errors(session.log.context.name):
        outgoing = make_outgoing(session, view=view, lineage=lineage)
        if not view and session.info.source == to:
            outgoing.kept_source = find_kept_source(session, found)
            outgoing.has_new_request = _has_new_request(session, outgoing)
            undone = _count_undone(session.log, lineage)
            outgoing.count_loss("retractions that undo summaries of the source", undone)
        copied = _find_copy(found, outgoing)
        if not isinstance(target, Path):
            written = _write_file(found, outgoing, copied, target)
        else:
            with open_new_path(target) as beside:
                if copied and found.is_folder:
                    written = write_folder(copied, beside)
                else:
                    with open_new(beside) as file:
                        written = _write_file(found, outgoing, copied, file)
    return ExportReport(
        session=session.key,
        format=found.name,
        path=str(target) if isinstance(target, Path) else None,
        bytes=written,
        of="view" if view else "log",
        lost=dict(outgoing.losses),
    )


def find_format(name: str) -> Format:
    """Return the format of that name. Raises ExportError if it is unknown."""
    if found := FORMATS.get(name):
        return found
    raise ExportError(f"the format {name!r} is not known: choose one of {', '.join(FORMATS)}")


def _has_new_request(session: StoredSession, outgoing: OutgoingSession) -> bool:
    """Return whether anything of the request was set after the import's last step."""
    log = session.log
    last = log.events.recorder.find_last_keyed(log.id)  # an import has a key for each step
    for part in outgoing.read_parts():
        if isinstance(part, OutgoingBlock) and not is_added(outgoing, part):
            last = max(last, part.position)
    later = log.events.read(log.chain(), Ranges.span(last + 1, log.position))
    kinds = (SystemPromptSet, ToolsSet, RequestSettingsSet)
    return any(isinstance(recorded.event, kinds) for recorded in later)


def _count_undone(log: SessionLog, lineage: str) -> int:
    """Count the summaries of the source that cover what was retracted since the import."""
    reader = log.reader(lineage)
    removed = _find_removed(reader.read_retractions(log.position))
    served = _find_served(reader) if removed else []
    found = [reader.read_boundary(activated.boundary) for activated in served]
    return sum(
        summary is not None
        and boundary.policy == RECORDED_LINEAGE
        and bool(summary.covers & removed)
        for boundary, summary, _ in found
    )


def make_outgoing(
    session: StoredSession, *, view: bool = False, lineage: str = MAIN_LINEAGE, forks: bool = True
) -> OutgoingSession:
    log, info = session.log, session.info
    reader, opened = log.reader(lineage), log.read_opening()
    served = reader.read_view()
    if view:
        parts = partial(read_view_parts, served, opened.timestamp)
        viewed = lambda: served  # noqa: E731 - it was read already
    else:
        first = opened.fork.position + 1 if opened.fork and not forks else 1
        parts = partial(read_log_parts, log, lineage, first)
        viewed = partial(reader.read_view, None, 0)
    return OutgoingSession(
        key=session.key,
        title=info.title,
        source=info.source,
        project=info.project,
        parent=info.parent,
        opened_at=opened.timestamp,
        system_prompt=served.system_prompt,
        tools=served.tool_definitions,
        settings=served.request_settings,
        read_parts=parts,
        load_view=viewed,
        is_view=view,
        forks=tuple(_find_forks(session)) if forks and not view else (),
    )


def _find_forks(session: StoredSession) -> Iterator[OutgoingSession]:
    """Yield the branches of the same transcript, whose keys begin with the session's own."""
    for log in list_logs(session.log.context, session.namespace):
        if log.key.startswith(f"{session.key}/") and log.read_opening().fork:
            yield make_outgoing(StoredSession(log), forks=False)


def _find_copy(found: Format, outgoing: OutgoingSession) -> KeptSource | None:
    """Return the source if it is written as it is; None if the format's writer has to.

    Raises ExportError if the format has no writer and the source is not kept, or has changed.
    """
    source = outgoing.kept_source
    if source and not (found.write and found.begin_reading) and is_as_imported(outgoing):
        return source
    if found.write is None:
        known = ", ".join(one.name for one in FORMATS.values() if one.write)
        why = "something was added or retracted since" if source else "its source is not kept alone"
        if outgoing.source != found.name or outgoing.is_view:
            why = "only sessions that came in it can be written"
        raise ExportError(f"{outgoing.key} as {found.name}: {why}; choose one of {known}")
    return None


def _write_file(
    found: Format, outgoing: OutgoingSession, copied: KeptSource | None, out: BinaryIO
) -> int:
    if copied:
        if found.is_folder:
            raise ExportError(f"{found.name} is a folder of files: name a new folder with --out")
        return sum(out.write(piece) for pieces in copied.read_files() for piece in pieces)
    assert found.write, "a format without a writer is copied"
    written = 0
    ended = True
    for piece in found.write(outgoing):
        if found.begin_reading and not ended:
            written += out.write(b"\n")  # the last line of a source may have no end
        written += out.write(piece)
        ended = piece.endswith(b"\n")
    return written

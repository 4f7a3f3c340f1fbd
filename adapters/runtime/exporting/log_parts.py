"""Reads a session for a format's writer, from the log or from a compacted view."""

import json
from collections.abc import Iterator
from datetime import datetime

from ....domain.blocks import AnyBlock, Block, Kind, ToolResult
from ....domain.compaction_events import BoundaryActivated, CompactionReverted
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
from ...storage.view_reader import ViewReader
from ...transcripts.formats.outgoing import (
    OutgoingBlock,
    OutgoingCall,
    OutgoingCompaction,
    OutgoingPart,
)

_AT_ONCE = 500
"""The number of events read at a time."""


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
            case _:
                pass
    return served


def _make_compaction(reader: ViewReader, activated: BoundaryActivated) -> OutgoingCompaction:
    boundary, summary, _ = reader.read_boundary(activated.boundary)
    return OutgoingCompaction(boundary, summary, activated.timestamp)

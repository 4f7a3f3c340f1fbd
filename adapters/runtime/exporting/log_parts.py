"""Reads a session for its writers: block by block from the log, or from a compacted view."""

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
from ...transcripts.formats.outgoing import Called, Compacted, Part, Said

_AT_ONCE = 500
"""Events that are read at a time."""


def log_parts(
    events: EventStore, namespace: str, key: str, lineage: str, first: int = 1
) -> Iterator[Part]:
    """What the session's log holds from position `first` on, each boundary where it was served."""
    chain = events.session_chain(namespace, key)
    reader = ViewReader(events, namespace, key, lineage)
    head = events.head(chain)[0]
    retracted = reader.retracted(head)
    served = _served(events, events.lineage_chain(namespace, key, lineage))
    waiting = [one for one in served if one.effective_from >= first]
    for begin in range(first, head + 1, _AT_ONCE):
        span = Ranges.span(begin, min(begin + _AT_ONCE - 1, head))
        for recorded in events.read(chain, span):
            while waiting and waiting[0].effective_from < recorded.position:
                yield _compacted(reader, waiting.pop(0))
            if part := _part(recorded.position, recorded.event, retracted):
                yield part
    for activated in waiting:
        yield _compacted(reader, activated)


def view_parts(view: HistoryView, began: datetime) -> Iterator[Part]:
    """What the view shows: its boundary first, then what was kept, as it is shown.

    `began` is the time of blocks whose source tells none.
    """
    if view.boundary is not None:
        yield Compacted(view.boundary, view.summary, view.boundary.timestamp)
    for entry in view.entries:
        block = entry.block if entry.shown is None else _instead(entry.block, entry.shown)
        yield Said(entry.position, entry.turn, began, block)


def _part(position: int, event: Event, retracted: Ranges) -> Part | None:
    match event:
        case BlockAppended() | ToolCalled() | ToolReturned():
            gone = position in retracted
            return Said(position, event.turn, event.timestamp, event.block, retracted=gone)
        case ToolCallAbandoned(tool_call_id=name, reason=reason, turn=turn):
            answer = ToolResult(tool_call_id=name, content=f"[abandoned: {reason}]", is_error=True)
            return Said(position, turn, event.timestamp, answer, abandoned=True)
        case ModelCalled():
            return Called(position, event)
        case _:
            return None


def _instead(block: AnyBlock, shown: str) -> AnyBlock:
    """A block that a view shows shortened, or with other words in its place."""
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


def _served(events: EventStore, chain: Chain) -> list[BoundaryActivated]:
    """The boundaries that were served and not taken back since, oldest first."""
    served: list[BoundaryActivated] = []
    version = events.lineage_state(chain)[0] if chain.segments else 0
    for recorded in events.read(chain, Ranges.span(1, version)):
        match recorded.event:
            case BoundaryActivated() as activated:
                served.append(activated)
            case CompactionReverted(boundary=reverted):
                served = [one for one in served if one.boundary != reverted]
            case _:
                pass
    return served


def _compacted(reader: ViewReader, activated: BoundaryActivated) -> Compacted:
    boundary, summary, _ = reader.boundary(activated.boundary)
    return Compacted(boundary, summary, activated.timestamp)

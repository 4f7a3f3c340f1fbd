"""Reads original blocks by their handles, even after they have left the view."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....domain.blocks import AnyBlock, ToolResult
from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges
from ....domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned
from ....projections.view_content import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore

RECALL_PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    position: int
    block: AnyBlock
    turn: int

    @property
    def handle(self) -> str:
        return f"#{self.position}"


def recall_blocks(
    store: EventStore, chain: Chain, wanted: Ranges | None, search: str | None
) -> list[RecalledBlock]:
    """Return the wanted blocks, or all of them; with `search`, only those that contain the text.

    Raises InvalidPositionError for positions that do not exist, and for single positions without a
    block.
    """
    if wanted is None and search is None:
        raise InvalidPositionError("nothing to recall: give handles, or text to search")
    head = store.read_head(chain)[0]
    if wanted is None:
        wanted = Ranges.span(1, head)
    elif wanted.runs[-1][1] > head:
        raise InvalidPositionError(
            f"#{wanted.runs[-1][1]} does not exist: the session ends at #{head}"
        )
    blocks = read_recalled(store, chain, wanted)
    if search is not None:
        return list(filter_by_text(blocks, search))
    found = list(blocks)
    missing = wanted - Ranges.of(block.position for block in found)
    if missing and all(first == last for first, last in wanted.runs):
        raise InvalidPositionError(f"{missing} is not a block")
    return found


def read_recalled(store: EventStore, chain: Chain, positions: Ranges) -> Iterator[RecalledBlock]:
    """Yield the blocks at these positions in order, reading page by page."""
    for first, last in positions.runs:
        for start in range(first, last + 1, RECALL_PAGE_EVENTS):
            page = Ranges.span(start, min(last, start + RECALL_PAGE_EVENTS - 1))
            for recorded in store.read(chain, page):
                if (block := make_recalled(recorded)) is not None:
                    yield block


def make_recalled(recorded: RecordedEvent) -> RecalledBlock | None:
    """Return the event's block; None if it has none."""
    position = recorded.position
    match recorded.event:
        case (
            BlockAppended(block=block, turn=turn)
            | ToolCalled(block=block, turn=turn)
            | ToolReturned(block=block, turn=turn)
        ):
            return RecalledBlock(position, block, turn)
        case ToolCallAbandoned(tool_call_id=call, reason=reason, turn=turn):
            answer = ToolResult(tool_call_id=call, content=reason, is_error=True)
            return RecalledBlock(position, answer, turn)
        case _:
            return None


def filter_by_text(blocks: Iterable[RecalledBlock], text: str) -> Iterator[RecalledBlock]:
    wanted = text.casefold()
    for block in blocks:
        name = getattr(block.block, "name", None) or ""
        if wanted in block.block.text.casefold() or wanted in name.casefold():
            yield block

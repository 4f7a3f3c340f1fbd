"""Reads originals by their handles, whatever became of them in the view."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....domain.blocks import AnyBlock, ToolResult
from ....domain.errors import InvalidPositionError
from ....domain.ranges import Ranges
from ....domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned
from ....projections.recorded import Recorded
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore

PAGE = 500


@dataclass(frozen=True, slots=True)
class Recalled:
    """One block, as it was recorded."""

    position: int
    block: AnyBlock
    turn: int

    @property
    def handle(self) -> str:
        return f"#{self.position}"


def recall(
    store: EventStore, chain: Chain, wanted: Ranges | None, search: str | None
) -> list[Recalled]:
    """The wanted blocks, or all that ever were; with `search`, those of them that hold the text.

    Raises InvalidPositionError for what does not exist, and for single positions that are no block.
    """
    if wanted is None and search is None:
        raise InvalidPositionError("nothing to recall: give handles, or text to search")
    head = store.head(chain)[0]
    if wanted is None:
        wanted = Ranges.span(1, head)
    elif wanted.runs[-1][1] > head:
        raise InvalidPositionError(
            f"#{wanted.runs[-1][1]} does not exist: the session ends at #{head}"
        )
    blocks = recalled(store, chain, wanted)
    if search is not None:
        return list(found_in(blocks, search))
    found = list(blocks)
    missing = wanted - Ranges.of(block.position for block in found)
    if missing and all(first == last for first, last in wanted.runs):
        raise InvalidPositionError(f"{missing} is not a block")
    return found


def recalled(store: EventStore, chain: Chain, positions: Ranges) -> Iterator[Recalled]:
    """The blocks at these positions in order, read page by page."""
    for first, last in positions.runs:
        for start in range(first, last + 1, PAGE):
            page = Ranges.span(start, min(last, start + PAGE - 1))
            for recorded in store.read(chain, page):
                if (block := block_of(recorded)) is not None:
                    yield block


def block_of(recorded: Recorded) -> Recalled | None:
    """The block that an event stands for; None where it stands for none."""
    position = recorded.position
    match recorded.event:
        case (
            BlockAppended(block=block, turn=turn)
            | ToolCalled(block=block, turn=turn)
            | ToolReturned(block=block, turn=turn)
        ):
            return Recalled(position, block, turn)
        case ToolCallAbandoned(tool_call_id=call, reason=reason, turn=turn):
            answer = ToolResult(tool_call_id=call, content=reason, is_error=True)
            return Recalled(position, answer, turn)
        case _:
            return None


def found_in(blocks: Iterable[Recalled], text: str) -> Iterator[Recalled]:
    """Those that hold the text, whatever its case."""
    wanted = text.casefold()
    for block in blocks:
        name = getattr(block.block, "name", None) or ""
        if wanted in block.block.text.casefold() or wanted in name.casefold():
            yield block

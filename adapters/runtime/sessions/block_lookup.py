"""Reads blocks by their handles, and finds what belongs to them: message, call and results."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....domain.blocks import AnyBlock, ToolResult
from ....domain.errors import InvalidPositionError
from ....domain.event import Event
from ....domain.ranges import Ranges, Run
from ....domain.session_events import (
    BlockAppended,
    BlockEvent,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....projections.view_content import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore

_FIRST_PAGE_EVENTS, _PAGE_EVENTS = 4, 500
"""Related blocks are usually near, so a page without a match is followed by a larger one."""
_NEARBY_POSITIONS = 16
"""Gaps up to this size are read through, since model calls are recorded between messages."""


def collect_positions(positions: Iterable[int | Ranges]) -> Ranges:
    """Return all positions passed singly or in ranges. Raises InvalidPositionError if none."""
    wanted = Ranges()
    for position in positions:
        if isinstance(position, Ranges):
            wanted |= position
        elif position < 1:
            raise InvalidPositionError(f"positions begin at 1, not {position}")
        else:
            wanted |= Ranges.of([position])
    if not wanted:
        raise InvalidPositionError("no positions were given")
    return wanted


def check_blocks(log: list[RecordedEvent], wanted: Ranges, retracted: Ranges) -> None:
    """Raise InvalidPositionError if a wanted position has no block or was retracted."""
    blocks = {recorded.position for recorded in log if isinstance(recorded.event, BlockEvent)}
    for position in wanted:
        if position not in blocks:
            raise InvalidPositionError(f"#{position} is not a block")
        if position in retracted:
            raise InvalidPositionError(f"#{position} was retracted")


def complete_groups(
    store: EventStore, chain: Chain, wanted: Ranges, head: int, retracted: Ranges
) -> Ranges:
    """Return the wanted blocks with the rest of their call pairs and messages.

    A message lies within one turn; a result may come at any time after its call.
    """
    group: set[int] = set()
    for first, last in _nearby_runs(wanted):
        stretch = wanted & Ranges.span(first, last)
        group |= _find_group(store, chain, stretch, head, retracted)
    return Ranges.of(group)


def _nearby_runs(wanted: Ranges) -> Iterator[Run]:
    """Yield runs of wanted positions to read in one query, ignoring small gaps."""
    begin = end = 0
    for first, last in wanted.runs:
        if not begin or first > end + _NEARBY_POSITIONS:
            if begin:
                yield begin, end
            begin = first
        end = last
    if begin:
        yield begin, end


def _find_group(
    store: EventStore, chain: Chain, wanted: Ranges, head: int, retracted: Ranges
) -> set[int]:
    first, last = wanted.runs[0][0], wanted.runs[-1][1]
    seen = {one.position: one.event for one in store.read(chain, Ranges.span(first, last))}
    group = set(wanted)
    group |= {
        answer.call
        for position in wanted
        if isinstance(answer := seen[position], ToolReturned | ToolCallAbandoned)
    }
    elsewhere = group - seen.keys()
    messages = {name for position in group - elsewhere if (name := _find_message(seen[position]))}
    if messages:
        for pages in (_read_forward(store, chain, last, head), _read_backward(store, chain, first)):
            for recorded in pages:
                event = seen[recorded.position] = recorded.event
                said = getattr(event, "block", None)
                if said and said.kind == "user" and _find_message(event) not in messages:
                    break
        group |= {position for position, event in seen.items() if _find_message(event) in messages}
    calls = {position for position in group if isinstance(seen.get(position), ToolCalled)}
    group |= find_answers(store, chain, calls, head, retracted)
    for call in elsewhere:
        group |= _find_group(store, chain, Ranges.of([call]), head, retracted)
    return {position for position in group if position not in retracted}


def _find_message(event: Event) -> tuple[int, str] | None:
    """Return the turn and message of a block; None for a result, which is its own message."""
    if isinstance(event, BlockAppended | ToolCalled) and event.block.message_id is not None:
        return event.turn, event.block.message_id
    return None


def find_answers(
    store: EventStore, chain: Chain, calls: set[int], head: int, retracted: Ranges
) -> set[int]:
    """Return the positions of the answers to these calls, without retracted ones."""
    waiting, answers = set(calls), set[int]()
    if not waiting:
        return answers
    for recorded in _read_forward(store, chain, min(waiting), head):
        event = recorded.event
        if (
            isinstance(event, ToolReturned | ToolCallAbandoned)
            and event.call in waiting
            and recorded.position not in retracted
        ):
            answers.add(recorded.position)
            waiting.discard(event.call)
            if not waiting:
                break
    return answers


def _read_forward(
    store: EventStore, chain: Chain, first: int, head: int
) -> Iterator[RecordedEvent]:
    size = _FIRST_PAGE_EVENTS
    while first <= head:
        last = min(head, first + size - 1)
        yield from store.read(chain, Ranges.span(first, last))
        first, size = last + 1, min(_PAGE_EVENTS, 2 * size)


def _read_backward(store: EventStore, chain: Chain, last: int) -> Iterator[RecordedEvent]:
    size = _FIRST_PAGE_EVENTS
    while last > 0:
        first = max(1, last - size + 1)
        yield from reversed(store.read(chain, Ranges.span(first, last)))
        last, size = first - 1, min(_PAGE_EVENTS, 2 * size)


def complete_retraction(
    store: EventStore,
    chain: Chain,
    wanted: Ranges,
    *,
    retracted: Ranges,
    head: int,
    open_calls: Mapping[str, int],
) -> tuple[Ranges, dict[str, int]]:
    """Return everything to retract with the wanted positions, and the calls that are open again.

    A call takes its result along, wherever that is. A result without its call reopens the call.
    """
    if wanted.runs[-1][1] > head:
        raise InvalidPositionError(
            f"#{wanted.runs[-1][1]} does not exist: the session ends at #{head}"
        )
    log = store.read(chain, wanted - retracted)
    blocks = {recorded.position for recorded in log if isinstance(recorded.event, BlockEvent)}
    if not blocks:
        raise InvalidPositionError(f"{wanted} has no block that can be retracted")
    calls = {recorded.position for recorded in log if isinstance(recorded.event, ToolCalled)}
    answered = {
        recorded.event.call
        for recorded in log
        if isinstance(recorded.event, ToolReturned | ToolCallAbandoned)
    }
    waiting = set(open_calls.values())
    blocks |= find_answers(store, chain, calls - answered - waiting, head, retracted)
    reopened = {}
    for recorded in log:
        event = recorded.event
        if isinstance(event, ToolReturned | ToolCallAbandoned) and event.call not in calls:
            name = (
                event.tool_call_id
                if isinstance(event, ToolCallAbandoned)
                else event.block.tool_call_id
            )
            if name in open_calls or name in reopened:
                # Its id was used again, and two open calls with one id could not be distinguished.
                blocks.add(event.call)
            else:
                reopened[name] = event.call
    return Ranges.of(blocks), reopened


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

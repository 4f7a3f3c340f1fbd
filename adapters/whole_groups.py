"""Finds what belongs to a block in the log: its message's other pieces, its call, its results."""

from collections.abc import Iterator

from ..domain.errors import InvalidPositionError
from ..domain.ranges import Ranges
from ..domain.session_events import (
    BlockAppended,
    BlockEvent,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ..projections.recorded import Recorded
from .event_log.chain import Chain
from .event_log.event_store import EventStore

FIRST_PAGE, PAGE = 4, 500
"""What is looked for stands near as a rule; a page that finds nothing is followed by a larger."""


def check_blocks(log: list[Recorded], wanted: Ranges, retracted: Ranges) -> None:
    """Every wanted position must name a block that was not taken back."""
    blocks = {recorded.position for recorded in log if isinstance(recorded.event, BlockEvent)}
    for position in wanted:
        if position not in blocks:
            raise InvalidPositionError(f"#{position} is not a block")
        if position in retracted:
            raise InvalidPositionError(f"#{position} was retracted")


def whole_groups(
    store: EventStore, chain: Chain, wanted: Ranges, head: int, retracted: Ranges
) -> Ranges:
    """The wanted blocks with their pairs and messages whole.

    The pieces of a message stand in one turn; a result may come at any time after its call.
    """
    group: set[int] = set()
    for position in wanted:
        if position not in group:
            group |= _group_of(store, chain, position, head, retracted)
    return Ranges.of(group)


def _group_of(
    store: EventStore, chain: Chain, position: int, head: int, retracted: Ranges
) -> set[int]:
    block = store.read(chain, Ranges.of([position]))[0].event
    call = block.call if isinstance(block, ToolReturned | ToolCallAbandoned) else position
    asked = store.read(chain, Ranges.of([call]))[0].event
    said = asked.block if isinstance(asked, BlockAppended | ToolCalled | ToolReturned) else None
    group = {position, call}
    if said is not None and said.message_id is not None:
        group |= _message(store, chain, call, head, said.message_id)
    calls = {
        recorded.position
        for recorded in store.read(chain, Ranges.of(group))
        if isinstance(recorded.event, ToolCalled)
    }
    group |= answers_to(store, chain, calls, head, retracted)
    return {position for position in group if position not in retracted}


def _message(store: EventStore, chain: Chain, position: int, head: int, message: str) -> set[int]:
    pieces = set()
    for pages in (_forward(store, chain, position, head), _backward(store, chain, position)):
        for recorded in pages:
            event = recorded.event
            said = getattr(event, "block", None)
            if said is not None and said.message_id == message:
                pieces.add(recorded.position)
            elif said is not None and said.kind == "user":
                break
    return pieces


def answers_to(
    store: EventStore, chain: Chain, calls: set[int], head: int, retracted: Ranges
) -> set[int]:
    """Where the calls at these positions were answered, answers that were taken back left out."""
    waiting, answers = set(calls), set[int]()
    if not waiting:
        return answers
    for recorded in _forward(store, chain, min(waiting), head):
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


def _forward(store: EventStore, chain: Chain, first: int, head: int) -> Iterator[Recorded]:
    size = FIRST_PAGE
    while first <= head:
        last = min(head, first + size - 1)
        yield from store.read(chain, Ranges.span(first, last))
        first, size = last + 1, min(PAGE, 2 * size)


def _backward(store: EventStore, chain: Chain, last: int) -> Iterator[Recorded]:
    size = FIRST_PAGE
    while last > 0:
        first = max(1, last - size + 1)
        yield from reversed(store.read(chain, Ranges.span(first, last)))
        last, size = first - 1, min(PAGE, 2 * size)

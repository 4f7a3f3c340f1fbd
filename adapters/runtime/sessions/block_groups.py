"""Finds the blocks that belong together: call and result, message, item."""

from collections.abc import Iterable, Iterator, Mapping

from ....domain.errors import InvalidPositionError
from ....domain.event import Event
from ....domain.ranges import Ranges, Run
from ....domain.session_events import (
    BlockAppended,
    BlockEvent,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from ....projections.view_content import RecordedEvent
from ...storage.view_reader import ViewReader
from .recalled_blocks import PAGE_EVENTS, check_end, get_item

_FIRST_PAGE_EVENTS = 4
"""Related blocks are usually near, so a page without a match is followed by a larger one."""
_NEARBY_POSITIONS = 16
"""Gaps up to this size are read through, since model calls are recorded between messages."""

CallEnd = ToolReturned | ToolCallAbandoned


def get_call_id(end: CallEnd) -> str:
    return end.tool_call_id if isinstance(end, ToolCallAbandoned) else end.block.tool_call_id


class SessionBlocks:
    """The blocks of a session up to a position, to find what belongs together."""

    def __init__(self, reader: ViewReader, head: int | None = None) -> None:
        self._store, self._chain = reader.store, reader.chain
        self._head = self._store.read_head(self._chain)[0] if head is None else head
        self.retracted = reader.read_retracted(self._head)
        self._known: dict[int, RecordedEvent | None] = {}
        """What was read, since a turn is read through for each of its messages."""

    def check(self, wanted: Ranges) -> None:
        """Raise InvalidPositionError if a wanted position has no block or was retracted."""
        log = self._store.read(self._chain, wanted & Ranges.span(1, self._head))
        blocks = {recorded.position for recorded in log if isinstance(recorded.event, BlockEvent)}
        for position in wanted:
            if position not in blocks:
                raise InvalidPositionError(f"#{position} is not a block")
            if position in self.retracted:
                raise InvalidPositionError(f"#{position} was retracted")

    def close_groups(self, wanted: Ranges) -> Ranges:
        """Return the wanted blocks with the rest of their call pairs and messages.

        A message lies within one turn; a result may come at any time after its call.
        """
        group: set[int] = set()
        for first, last in _iter_nearby_runs(wanted):
            group |= self._find_group(wanted & Ranges.span(first, last))
        return Ranges.of(group) - self.retracted

    def close_retraction(
        self, wanted: Ranges, open_calls: Mapping[str, int]
    ) -> tuple[Ranges, dict[str, int]]:
        """Return all that is retracted with the wanted positions, and the calls that open again.

        A call takes its result along, wherever that is, and a block its whole item. A result
        without its call reopens the call.
        """
        check_end(wanted, self._head)
        log: list[RecordedEvent] = []
        taken, more, reopened = Ranges(), wanted - self.retracted, dict[str, int]()
        while more:
            log += self._store.read(self._chain, more)
            taken |= more
            more, reopened = self._find_related(log, taken, open_calls)
        blocks = Ranges.of(one.position for one in log if isinstance(one.event, BlockEvent))
        if not blocks:
            raise InvalidPositionError(f"{wanted} has no block that can be retracted")
        return blocks, reopened

    def _find_related(
        self, log: Iterable[RecordedEvent], taken: Ranges, open_calls: Mapping[str, int]
    ) -> tuple[Ranges, dict[str, int]]:
        """Return what is to be retracted with these events, and the calls that open again then."""
        calls = {recorded.position for recorded in log if isinstance(recorded.event, ToolCalled)}
        answers = [one.event for one in log if isinstance(one.event, CallEnd)]
        waiting = calls - {answer.call for answer in answers} - set(open_calls.values())
        more = self._find_answers(waiting) | self._find_pieces(log, taken)
        reopened: dict[str, int] = {}
        for answer in answers:
            if answer.call in calls:
                continue
            name = get_call_id(answer)
            if name in open_calls or name in reopened:
                # Its id was used again, and two open calls with one id could not be distinguished.
                more.add(answer.call)
            else:
                reopened[name] = answer.call
        return Ranges.of(more) - taken - self.retracted, reopened

    def _find_group(self, wanted: Ranges) -> set[int]:
        first, last = wanted.runs[0][0], wanted.runs[-1][1]
        log = self._store.read(self._chain, Ranges.span(first, last))
        seen = {recorded.position: recorded.event for recorded in log}
        answers = (event for at in wanted if isinstance(event := seen[at], CallEnd))
        group = set(wanted) | {answer.call for answer in answers}
        elsewhere = group - seen.keys()
        messages = {_find_message(seen[at]) for at in group - elsewhere} - {None}
        if messages:
            for pages in (self._read_pages(last, 1), self._read_pages(first, -1)):
                for recorded in pages:
                    event = seen[recorded.position] = recorded.event
                    block = getattr(event, "block", None)
                    if block and block.kind == "user" and _find_message(event) not in messages:
                        break
            group |= {at for at, event in seen.items() if _find_message(event) in messages}
        group |= self._find_answers({at for at in group if isinstance(seen.get(at), ToolCalled)})
        for call in elsewhere:
            group |= self._find_group(Ranges.of([call]))
        return group

    def _find_pieces(self, log: Iterable[RecordedEvent], taken: Ranges) -> set[int]:
        """Return the blocks of the items that only a part of `taken` belongs to; `log` has these.

        The blocks of an item follow one another and share a message id; the last one names them.
        """
        pieces, ends = set[int](), {last for _, last in taken.runs}
        for recorded in log:
            if item := get_item(recorded.event):
                pieces |= {*item.pieces}
            elif recorded.position in ends:
                pieces |= self._find_later_pieces(recorded.position)
        return pieces

    def _find_later_pieces(self, position: int) -> set[int]:
        """Return all blocks of the item of several that goes on after this position."""
        message = None
        for recorded in self._read_pages(position, 1):
            block, item = getattr(recorded.event, "block", None), get_item(recorded.event)
            if block is None and isinstance(recorded.event, TurnStarted):
                continue  # an item may begin with results, and go on with a prompt
            if block is None or block.message_id is None or message not in {None, block.message_id}:
                break
            if item:
                return {*item.pieces, recorded.position} if position in item.pieces else set()
            message = block.message_id
        return set()

    def _find_answers(self, calls: set[int]) -> set[int]:
        """Return the positions of the answers to these calls, without retracted ones."""
        waiting, answers = set(calls), set[int]()
        if not waiting:
            return answers
        for recorded in self._read_pages(min(waiting), 1):
            event = recorded.event
            if (
                isinstance(event, CallEnd)
                and event.call in waiting
                and recorded.position not in self.retracted
            ):
                answers.add(recorded.position)
                waiting.discard(event.call)
                if not waiting:
                    break
        return answers

    def _read_pages(self, begin: int, step: int) -> Iterator[RecordedEvent]:
        """Yield the events from a position on, forward or backward."""
        size = _FIRST_PAGE_EVENTS
        while 1 <= begin <= self._head:
            end = min(max(begin + step * (size - 1), 1), self._head)
            positions = range(begin, end + step, step)
            if missing := Ranges.of(at for at in positions if at not in self._known):
                self._known |= dict.fromkeys(missing)  # some may have no event to read
                self._known |= {one.position: one for one in self._store.read(self._chain, missing)}
            yield from filter(None, map(self._known.__getitem__, positions))
            begin, size = end + step, min(PAGE_EVENTS, 2 * size)


def _iter_nearby_runs(wanted: Ranges) -> Iterator[Run]:
    """Yield runs of wanted positions to read in one query, ignoring small gaps."""
    begin, end = wanted.runs[0]
    for first, last in wanted.runs:
        if first > end + _NEARBY_POSITIONS:
            yield begin, end
            begin = first
        end = last
    yield begin, end


def _find_message(event: Event) -> tuple[int, str] | None:
    """Return the turn and message of a block; None for a result, which is its own message."""
    if isinstance(event, BlockAppended | ToolCalled) and event.block.message_id is not None:
        return event.turn, event.block.message_id
    return None

"""Reads blocks by their handles or in order, and finds what belongs to them."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TypeGuard, cast

from pydantic import JsonValue

from ....domain.blocks import AnyBlock, BlockKind, ToolResult
from ....domain.errors import InvalidPositionError, InvalidSettingError
from ....domain.event import Event
from ....domain.native_item import CutItem, Item, fill_item
from ....domain.ranges import Ranges, Run
from ....domain.session_events import (
    BlockAppended,
    BlockEvent,
    BlocksRetracted,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from ....projections.view_content import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader

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


CallEnd = ToolReturned | ToolCallAbandoned


def get_call_id(end: CallEnd) -> str:
    return end.tool_call_id if isinstance(end, ToolCallAbandoned) else end.block.tool_call_id


class SessionBlocks:
    """The blocks of a session up to a position, to find what belongs together."""

    def __init__(self, reader: ViewReader, head: int | None = None) -> None:
        self._store, self._chain = reader.store, reader.chain
        self._head = self._store.read_head(self._chain)[0] if head is None else head
        self.retracted = reader.read_retracted(self._head)

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
            page = self._store.read(self._chain, Ranges.span(min(begin, end), max(begin, end)))
            yield from page[::step]
            begin, size = end + step, min(_PAGE_EVENTS, 2 * size)


def check_end(wanted: Ranges, head: int) -> None:
    """Raise InvalidPositionError if a wanted position is behind the end of the session."""
    if (last := wanted.runs[-1][1]) > head:
        raise InvalidPositionError(f"#{last} does not exist: the session ends at #{head}")


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


def get_item(event: Event) -> CutItem | None:
    """Return the item that ends with an event's block, as stored."""
    return event.item if isinstance(event, BlockAppended | ToolCalled | ToolReturned) else None


RECALL_PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True)
class RecalledBlock:
    position: int
    block: AnyBlock
    turn: int
    stored_item: CutItem | None = field(default=None, repr=False)
    pieces: tuple[AnyBlock, ...] = field(default=(), repr=False)
    """The blocks of the item that ends with this one."""

    @property
    def handle(self) -> str:
        return f"#{self.position}"

    @property
    def item(self) -> JsonValue:
        """The item that was appended, as it was given; None on all but the last of its blocks."""
        text = self.item_text
        return None if text is None else json.loads(text)

    @property
    def item_text(self) -> str | None:
        """The same as JSON text, for a framework that reads its items from it."""
        return fill_item(self.stored_item, self.pieces) if self.stored_item else None


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
    else:
        check_end(wanted, head)
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
            log = store.read(chain, page)
            known = {recorded.position: recorded for recorded in log}
            for recorded in log:
                if (
                    block := make_recalled(recorded, partial(store.read, chain), known)
                ) is not None:
                    yield block


def make_recalled(
    recorded: RecordedEvent,
    read: Callable[[Ranges], Iterable[RecordedEvent]] | None = None,
    known: Mapping[int, RecordedEvent] = MappingProxyType({}),
) -> RecalledBlock | None:
    """Return the event's block; None if it has none.

    With `read`, it has the item that ends with it, whose other blocks are `known` or are read.
    """
    position = recorded.position
    match recorded.event:
        case (
            BlockAppended(block=block, turn=turn, item=item)
            | ToolCalled(block=block, turn=turn, item=item)
            | ToolReturned(block=block, turn=turn, item=item)
        ):
            if item is None or read is None:
                return RecalledBlock(position, block, turn)
            if all(piece in known for piece in item.pieces):
                before: Iterable[RecordedEvent] = (known[piece] for piece in item.pieces)
            else:
                before = read(Ranges.of(item.pieces))
            pieces = [cast(BlockAppended, piece.event).block for piece in before]
            return RecalledBlock(position, block, turn, item, (*pieces, block))
        case ToolCallAbandoned(tool_call_id=call, reason=reason, turn=turn):
            answer = ToolResult(tool_call_id=call, content=reason, is_error=True)
            return RecalledBlock(position, answer, turn)
        case _:
            return None


def are_same_blocks(stored: Iterable[RecalledBlock], given: Iterable[AnyBlock | Item]) -> bool:
    """Return whether blocks and items were stored as they are given; message ids do not count.

    An item of several blocks gets an id of its own where it is stored.
    """
    return [(_drop_message_id(one.block), one.item) for one in stored] == [
        (_drop_message_id(block), item)
        for one in given
        for block, item in (
            [*((block, None) for block in one.blocks[:-1]), (one.blocks[-1], json.loads(one.text))]
            if isinstance(one, Item)
            else [(one, None)]
        )
    ]


def _drop_message_id(block: AnyBlock) -> AnyBlock:
    return block.model_copy(update={"message_id": None})


def parse_kinds(kinds: Iterable[BlockKind | str]) -> frozenset[BlockKind]:
    """Return the kinds by name. Raises InvalidSettingError for one that does not exist."""
    try:
        return frozenset(map(BlockKind, kinds))
    except ValueError as error:
        raise InvalidSettingError(f"{error}; kinds are {', '.join(BlockKind)}") from None


def select_blocks(
    reader: ViewReader,
    head: int,
    *,
    after: int,
    before: int | None,
    last: int | None,
    kinds: Collection[BlockKind | str] | None,
    retracted: bool,
    newest_first: bool,
) -> Iterator[RecalledBlock]:
    """Yield blocks of a session that ends at `head`, reading no more than is taken.

    See `StoredSession.blocks`.
    """
    store, chain = reader.store, reader.chain
    wanted = None if kinds is None else parse_kinds(kinds)
    end = head if before is None else min(before - 1, head)

    def is_wanted(block: RecalledBlock | None) -> TypeGuard[RecalledBlock]:
        return block is not None and (wanted is None or block.block.kind in wanted)

    def iter_forward() -> Iterator[RecalledBlock]:
        gone = Ranges() if retracted else reader.read_retracted(head)
        blocks = read_recalled(store, chain, Ranges.span(after + 1, end) - gone)
        yield from filter(is_wanted, blocks)

    def iter_back() -> Iterator[RecalledBlock]:
        size = min(last or 1, RECALL_PAGE_EVENTS) + 1
        read = partial(store.read, chain)
        for recorded, gone in _read_back(store, chain, head, after, size, skip=not retracted):
            is_there = retracted or recorded.position not in gone
            if recorded.position <= end and is_there:
                block = make_recalled(recorded, read)
                yield from (block,) if is_wanted(block) else ()

    if last is None and not newest_first:
        return iter_forward()
    newest = iter_back() if last is None else islice(iter_back(), last)
    return newest if newest_first else iter(list(newest)[::-1])


def find_newest_block(
    store: EventStore, chain: Chain, head: int
) -> tuple[list[RecordedEvent], Ranges] | None:
    """Return the newest event of a block that was not retracted, and the positions to retract.

    The events of the other blocks of its item come before it. The positions are theirs and all
    after them, and the older blocks that retractions after these took back.
    """
    for recorded, gone in _read_back(store, chain, head, 0, 1, skip=True):
        position = recorded.position
        if position not in gone and isinstance(recorded.event, BlockEvent):
            item = get_item(recorded.event)
            pieces = Ranges.of(item.pieces if item else ()) - gone
            before = store.read(chain, pieces) if pieces else []
            first = before[0].position if before else position
            return [*before, recorded], gone | Ranges.span(first, head)
    return None


def _read_back(
    store: EventStore, chain: Chain, head: int, after: int, size: int, *, skip: bool = False
) -> Iterator[tuple[RecordedEvent, Ranges]]:
    """Yield the events down to `after`, newest first, with what events behind them retract.

    `skip` leaves out what is retracted, without reading it. As a retraction comes after what it
    takes back, it is met in time.
    """
    gone, end, first_size = Ranges(), head, size
    while end > after:
        page = Ranges.span(max(end - size + 1, after + 1), end)
        for recorded in reversed(store.read(chain, page - gone if skip else page)):
            yield recorded, gone
            if isinstance(recorded.event, BlocksRetracted):
                gone |= recorded.event.positions
        end, size = page.runs[0][0] - 1, min(_PAGE_EVENTS, 2 * size)
        if skip and (run := gone.find_run(end)):
            end, size = run[0] - 1, first_size


def filter_by_text(blocks: Iterable[RecalledBlock], text: str) -> Iterator[RecalledBlock]:
    wanted = text.casefold()
    for block in blocks:
        name = getattr(block.block, "name", None) or ""
        if wanted in block.block.text.casefold() or wanted in name.casefold():
            yield block

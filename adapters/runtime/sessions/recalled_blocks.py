"""Reads recorded blocks by their handles or in order."""

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
from ....domain.native_item import CutItem, fill_item
from ....domain.ranges import Ranges
from ....domain.session_events import (
    BlockAppended,
    BlockEvent,
    BlocksRetracted,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
)
from ....projections.view_content import RecordedEvent
from ...storage.event_log.chain import Chain
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader

PAGE_EVENTS = 500
"""The most events that are read at once."""


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


def check_end(wanted: Ranges, head: int) -> None:
    """Raise InvalidPositionError if a wanted position is behind the end of the session."""
    if (last := wanted.runs[-1][1]) > head:
        raise InvalidPositionError(f"#{last} does not exist: the session ends at #{head}")


def get_item(event: Event) -> CutItem | None:
    """Return the item that ends with an event's block, as stored."""
    return event.item if isinstance(event, BlockAppended | ToolCalled | ToolReturned) else None


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
        for start in range(first, last + 1, PAGE_EVENTS):
            page = Ranges.span(start, min(last, start + PAGE_EVENTS - 1))
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
        # About a quarter of the events are calls of models and the like, and no blocks.
        size = min((last or 1) * 4 // 3 + 1, PAGE_EVENTS)
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
        end, size = page.runs[0][0] - 1, min(PAGE_EVENTS, 2 * size)
        if skip and (run := gone.find_run(end)):
            end, size = run[0] - 1, first_size


def filter_by_text(blocks: Iterable[RecalledBlock], text: str) -> Iterator[RecalledBlock]:
    wanted = text.casefold()
    for block in blocks:
        name = getattr(block.block, "name", None) or ""
        if wanted in block.block.text.casefold() or wanted in name.casefold():
            yield block

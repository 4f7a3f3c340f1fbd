"""Defines the item, one visible block as a policy sees it, and groups items into messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from .blocks import ASSISTANT_KINDS, PROMPT_KINDS, UNSENT_KINDS, AnyBlock, BlockKind


@dataclass(frozen=True, slots=True)
class WindowItem:
    position: int
    block: AnyBlock
    turn: int
    tokens: int
    """Estimated size as shown in the view."""
    call: int | None = None
    """For a tool result: the position of its call."""
    is_open: bool = False
    """For a tool call: it has no answer yet."""
    is_pinned: bool = False
    is_unfinished: bool = False
    """For a piece of a model's message: the model was interrupted before it ended."""
    length: int | None = None
    """The number of characters shown, if that is not the block's own text."""
    behind: int | None = None
    """For a late result: the position of the block that it follows in the view."""

    @property
    def kind(self) -> BlockKind:
        return self.block.kind

    @property
    def message(self) -> str | None:
        """The id of its message; None for a late result, which is apart from the other pieces."""
        return self.block.message_id if self.behind is None else None

    @property
    def place(self) -> int:
        """Its place in the view, as a position; the items of a window are in this order."""
        return self.position if self.behind is None else self.behind


get_place = attrgetter("place")


_Group = list["WindowItem"]


def group_blocks(items: Sequence["WindowItem"]) -> list[_Group]:
    """Return the items in groups; each call with its result, and each message, is in one group."""
    group_at: dict[int, _Group] = {}
    message_at: dict[str, int] = {}
    for item in items:
        message, position = item.message, item.position
        group = group_at.get(item.call) if item.call is not None else None
        if message:
            if message in message_at:
                group = _join_groups(group, group_at[message_at[message]], group_at)
            message_at[message] = position
        if group is None:
            group = []
        group.append(item)
        group_at[position] = group
    return list({id(group): group for group in group_at.values()}.values())


def _join_groups(one: _Group | None, other: _Group, group_at: dict[int, _Group]) -> _Group:
    if one is None or one is other:
        return other
    # Append the smaller group to the larger, so that no item moves more than log(n) times.
    large, small = (one, other) if len(one) >= len(other) else (other, one)
    large += small
    group_at |= {moved.position: large for moved in small}
    return large


class MessageRuns:
    """Assigns blocks, in order of position, to the runs in which a view shows them.

    A run is a message of the model with the answers to its calls, or the blocks between two such
    messages. A late result belongs to the run of its call, even if the model or the user has gone
    on.
    """

    def __init__(self) -> None:
        self.newest = 0
        self._of_call: dict[int, int] = {}
        """The run of each call, by the call's position."""
        self._message: str | None = None
        self._is_models = False
        self._goes_on = False
        """Whether the model's next piece may belong to the same message."""

    def add(self, position: int, block: AnyBlock, call: int | None) -> int:
        """Return the run of the next block; it is below `newest` for a late result."""
        kind = block.kind
        if call is not None:
            run = self._of_call.get(call, self.newest)
            if run == self.newest and self._message is None:
                self._goes_on = False
            return run
        if kind in ASSISTANT_KINDS:
            if not self._goes_on or block.message_id != self._message:
                self._begin_run(is_models=True)
                self._message = block.message_id
            if kind is BlockKind.TOOL_CALL:
                self._of_call[position] = self.newest
        elif self._is_models and not self._is_message_continued(kind):
            self._begin_run(is_models=False)
        return self.newest

    def _is_message_continued(self, kind: BlockKind) -> bool:
        """Check whether the model's message may go on after a block that it did not write."""
        # A harness adds remarks between the parallel calls of one message; a user does not.
        return kind in UNSENT_KINDS or (kind is BlockKind.DEVELOPER and self._message is not None)

    def _begin_run(self, *, is_models: bool) -> None:
        self.newest += 1
        self._is_models = self._goes_on = is_models


def order_for_view(items: Iterable["WindowItem"]) -> list["WindowItem"]:
    """Return items, given by position, in the order of the view: late results after their calls."""
    taking, runs = MessageRuns(), list[_Group]([[]])
    for item in items:
        number = taking.add(item.position, item.block, item.call)
        if number == len(runs):
            runs.append([])
        run = runs[number]
        is_late = number < taking.newest
        run.append(replace(item, behind=run[-1].place, turn=run[0].turn) if is_late else item)
    return list(chain.from_iterable(runs))


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    DEVELOPER = "developer"


class Message(NamedTuple):
    """Consecutive blocks of one message.

    A named tuple because it is the fastest to make: policies read whole histories as messages.
    """

    role: Role
    items: tuple[WindowItem, ...]
    start: int
    """The index of its first block among the given items."""

    @property
    def position(self) -> int:
        """The position of its first block; a cut before the message is there."""
        return self.items[0].position

    @property
    def calls(self) -> tuple[WindowItem, ...]:
        return tuple([item for item in self.items if item.block.kind is _CALL])


def group_messages(items: Sequence[WindowItem]) -> tuple[Message, ...]:
    """Return the items in messages.

    Each tool result is its own message. Notes and artifacts are left out, because no model is sent
    them.
    """
    messages: list[Message] = []
    pieces: list[WindowItem] = []
    begins, said_by, named = 0, Role.TOOL_RESULT, None
    for index, item in enumerate(items):
        block = item.block
        role = _ROLES.get(block.kind)
        if role is None:
            continue
        name = None if role is _RESULT else block.message_id
        if name is not None and name == named and role is said_by:
            pieces.append(item)
            continue
        if pieces:
            messages.append(Message(said_by, tuple(pieces), begins))
        pieces, begins, said_by, named = [item], index, role, name
    if pieces:
        messages.append(Message(said_by, tuple(pieces), begins))
    return tuple(messages)


def find_role(item: WindowItem) -> Role | None:
    """Return who wrote the block; None if no model is sent it."""
    return _ROLES.get(item.block.kind)


_CALL, _RESULT = BlockKind.TOOL_CALL, Role.TOOL_RESULT
"""Bound here because member access on an enumeration is slow."""
_ROLES: Mapping[BlockKind, Role] = {
    BlockKind.TOOL_RESULT: Role.TOOL_RESULT,
    BlockKind.DEVELOPER: Role.DEVELOPER,
    **dict.fromkeys(ASSISTANT_KINDS, Role.ASSISTANT),
    **dict.fromkeys(PROMPT_KINDS, Role.USER),
}


def find_message_start(items: Sequence[WindowItem], index: int) -> int:
    """Return the index at which the message of an item begins, without reading other messages."""
    name, role = items[index].block.message_id, find_role(items[index])
    if name is None or role is Role.TOOL_RESULT:
        return index
    while (
        index and items[index - 1].block.message_id == name and find_role(items[index - 1]) is role
    ):
        index -= 1
    return index


def find_message_end(items: Sequence[WindowItem], index: int) -> int:
    """Return the index at which the next message begins, without reading other messages."""
    name, role = items[index].block.message_id, find_role(items[index])
    index += 1
    if name is None or role is Role.TOOL_RESULT:
        return index
    while index < len(items) and (
        items[index].block.message_id == name and find_role(items[index]) is role
    ):
        index += 1
    return index


def find_whole_message(items: Sequence[WindowItem], index: int) -> int:
    """Return the first index from `index` on at which a message begins that is no tool result.

    A cut there lets each message leave with its results, or stay whole. Returns the number of
    items if there is none.
    """
    while index < len(items) and (
        items[index].kind is BlockKind.TOOL_RESULT or find_message_start(items, index) < index
    ):
        index += 1
    return index


def iter_message_spans_back(items: Sequence[WindowItem]) -> Iterator[tuple[int, int]]:
    """Yield the span of each message, newest first, reading only what the caller iterates."""
    end = len(items)
    while end:
        start = find_message_start(items, end - 1)
        yield start, end
        end = start

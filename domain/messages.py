"""Groups blocks into the messages of a conversation, between which most policies cut."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from .blocks import ASSISTANT_KINDS, PROMPT_KINDS, BlockKind
from .item import WindowItem


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


def iter_message_spans_back(items: Sequence[WindowItem]) -> Iterator[tuple[int, int]]:
    """Yield the span of each message, newest first, reading only what the caller iterates."""
    end = len(items)
    while end:
        start = find_message_start(items, end - 1)
        yield start, end
        end = start

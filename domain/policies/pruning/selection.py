"""Which messages stay within a budget: two ways to choose, and what they may not touch."""

from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple

from ...cut_points.carried_blocks import is_carried
from ...messages import Message


class PruningChoice(StrEnum):
    """How messages are chosen."""

    REMOVE_LOWEST = "remove-lowest"
    """Those of the least worth leave, the oldest of equals first, until the rest fits."""
    KEEP_HIGHEST = "keep-highest"
    """Those of the most worth stay while there is room; one that is too large is passed over."""


class ProtectionUnit(StrEnum):
    """What the newest that always stay are counted in."""

    TURNS = "turns"
    """The current turn is always among them."""
    MESSAGES = "messages"


class RankedMessages(NamedTuple):
    """Messages that stay or leave as one; of two, the lesser leaves first.

    A named tuple, the fastest to make and to compare: there is one of each message.
    """

    leaves_late: bool
    """Whether all that does not leaves before it."""
    worth: float
    tokens: int
    indices: Sequence[int]


def find_protected(
    messages: Sequence[Message], newest: int, counted_in: ProtectionUnit
) -> frozenset[int]:
    """Indices of the messages that are too new to leave."""
    if counted_in is ProtectionUnit.MESSAGES:
        return frozenset(range(max(0, len(messages) - newest), len(messages)))
    turns: set[int] = set()
    for index in reversed(range(len(messages))):
        turns.add(messages[index].items[0].turn)
        if len(turns) > max(1, newest):
            return frozenset(range(index + 1, len(messages)))
    return frozenset(range(len(messages)))


def find_carried(messages: Sequence[Message]) -> frozenset[int]:
    """Indices of the messages that no compaction may take out: pinned, or with an open call."""
    return frozenset(
        index for index, message in enumerate(messages) if any(map(is_carried, message.items))
    )


def choose_leaving(ranked: Sequence[RankedMessages], choice: PruningChoice, room: int) -> set[int]:
    """Which indices of `ranked`, which stand in order, leave so that so many tokens are enough."""
    if choice is PruningChoice.REMOVE_LOWEST:
        return _choose_lowest(ranked, room)
    return _choose_all_but_highest(ranked, room)


def _choose_lowest(ranked: Sequence[RankedMessages], room: int) -> set[int]:
    taken = sum(one.tokens for one in ranked)
    gone = set[int]()
    for one in _sort_by_worth(ranked):
        if taken <= room:
            break
        taken -= one.tokens
        gone.update(one.indices)
    return gone


def _choose_all_but_highest(ranked: Sequence[RankedMessages], room: int) -> set[int]:
    gone = set[int]()
    # What is too large is passed over; where there is no room, what takes nothing leaves too.
    is_room = room > 0
    for one in _sort_by_worth(ranked, reverse=True):
        if is_room and one.tokens <= room:
            room -= one.tokens
        else:
            gone.update(one.indices)
    return gone


def _sort_by_worth(
    ranked: Sequence[RankedMessages], *, reverse: bool = False
) -> list[RankedMessages]:
    """What leaves first comes first; sorting leaves equals in their order, the oldest first."""
    # Twice by one value each, which is several times as fast as once by two of them.
    in_order = sorted(ranked, key=_worth, reverse=reverse)
    in_order.sort(key=_leaves_late, reverse=reverse)
    return in_order


_leaves_late, _worth = itemgetter(0), itemgetter(1)

"""Selects which messages stay within a budget, in two ways, and which are protected."""

from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple

from ...cut_points import is_carried
from ...messages import Message


class PruningChoice(StrEnum):
    """How messages are chosen."""

    REMOVE_LOWEST = "remove-lowest"
    """Messages with the lowest scores leave, oldest first among equals, until the rest fits."""
    KEEP_HIGHEST = "keep-highest"
    """Messages with the highest scores stay while there is room; one that is too large is skipped.
    """


class ProtectionUnit(StrEnum):
    """The unit in which the protected newest part is counted."""

    TURNS = "turns"
    """The current turn is always protected."""
    MESSAGES = "messages"


class RankedMessages(NamedTuple):
    """Messages that stay or leave together; of two, the lower ranked leaves first.

    A named tuple, the fastest to make and compare, because every message gets one.
    """

    leaves_late: bool
    """Whether all messages without this flag leave first."""
    worth: float
    tokens: int
    indices: Sequence[int]


def find_protected(
    messages: Sequence[Message], newest: int, counted_in: ProtectionUnit
) -> frozenset[int]:
    """Return the indices of the messages that are too new to leave."""
    if counted_in is ProtectionUnit.MESSAGES:
        return frozenset(range(max(0, len(messages) - newest), len(messages)))
    turns: set[int] = set()
    for index in reversed(range(len(messages))):
        turns.add(messages[index].items[0].turn)
        if len(turns) > max(1, newest):
            return frozenset(range(index + 1, len(messages)))
    return frozenset(range(len(messages)))


def find_carried(messages: Sequence[Message]) -> frozenset[int]:
    """Return the indices of the messages that must stay: pinned, or with an open call."""
    return frozenset(
        index for index, message in enumerate(messages) if any(map(is_carried, message.items))
    )


def choose_leaving(ranked: Sequence[RankedMessages], choice: PruningChoice, room: int) -> set[int]:
    """Return the indices, from `ranked` in order, that leave so that the rest fits into `room`."""
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
    # Messages that are too large are skipped; without any room, even empty ones leave.
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
    """Return what leaves first at the start; equals stay in order, oldest first."""
    # Two sorts by one value each are several times as fast as one sort by two.
    in_order = sorted(ranked, key=_worth, reverse=reverse)
    in_order.sort(key=_leaves_late, reverse=reverse)
    return in_order


_leaves_late, _worth = itemgetter(0), itemgetter(1)

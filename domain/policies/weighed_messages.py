"""Weighs a window's messages by author, age and size, and selects which stay within a budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from ..blocks import ToolCall
from ..cut_points import is_carried
from ..digest import READ_TOOLS, normalize_tool_name, parse_names
from ..item import Item
from ..messages import Message, Role

_ROLE_SCORES = {Role.USER: 850, Role.DEVELOPER: 850, Role.TOOL_RESULT: 600, Role.ASSISTANT: 500}
"""Out of 1,000; developer instructions count as the user's."""
_SCORE_WITH_CALLS = 650
"""For a model's message that calls a tool."""
_READ_ONLY_TOOLS = READ_TOOLS | parse_names(
    "codesearch fetch fetchurl find findfiles glob globfiles grep grepsearch list listdir "
    "listdirectory listfiles ls search searchfiles tree urlfetch webfetch websearch"
)
"""Normalized names of tools that only read, and can read again."""
_ROLE_WEIGHT, _AGE_WEIGHT, _SIZE_WEIGHT, _NEWNESS_WEIGHT = 0.6, 0.3, 0.1, 0.05
_FADE_RATE = 0.1
"""How fast a message loses weight with each later one."""
_SMALL_TOKENS = 500
"""Messages of this size or more gain nothing for being small."""
_ASSISTANT = Role.ASSISTANT
_BUCKETS = {Role.USER: 0, Role.DEVELOPER: 0, Role.ASSISTANT: 1, Role.TOOL_RESULT: 2}


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


@dataclass(frozen=True)
class WeighedMessages:
    """Messages in order, with their tokens; scores and priorities are computed once."""

    messages: Sequence[Message]
    tokens: Sequence[int]

    @cached_property
    def total(self) -> int:
        return sum(self.tokens)

    @cached_property
    def buckets(self) -> tuple[int, int, int]:
        """Tokens of users, of the model, and of tool results."""
        sums = [0, 0, 0]
        for message, size in zip(self.messages, self.tokens, strict=True):
            sums[_BUCKETS[message.role]] += size
        return sums[0], sums[1], sums[2]

    @cached_property
    def calls(self) -> Sequence[Sequence[Item]]:
        return [m.calls if m.role is _ASSISTANT else () for m in self.messages]

    @cached_property
    def scores(self) -> Sequence[int]:
        return [
            _SCORE_WITH_CALLS if calls else _ROLE_SCORES[message.role]
            for message, calls in zip(self.messages, self.calls, strict=True)
        ]

    @cached_property
    def priorities(self) -> tuple[float, ...]:
        """The priority of each message; higher ones are kept before lower ones."""
        ages = range(len(self.messages) - 1, -1, -1)
        return tuple(map(_compute_priority, self.scores, self.tokens, ages))

    @cached_property
    def exchanges(self) -> Sequence[Sequence[int]]:
        """Indices in groups: a message that calls tools with their results, others alone."""
        groups: list[list[int]] = []
        of_call: dict[int | None, list[int]] = {}
        for index, (message, calls) in enumerate(zip(self.messages, self.calls, strict=True)):
            if group := of_call.get(message.items[0].call):
                group.append(index)
                continue
            groups.append([index])
            of_call |= {call.position: groups[-1] for call in calls}
        return groups

    def find_untouchable(self, newest: int, counted_in: ProtectionUnit) -> frozenset[int]:
        """Return the indices of the messages that stay: new, pinned, or with an open call."""
        carried = [i for i, one in enumerate(self.messages) if any(map(is_carried, one.items))]
        protected = range(self._find_protected(newest, counted_in), len(self.messages))
        return frozenset([*protected, *carried])

    def _find_protected(self, newest: int, counted_in: ProtectionUnit) -> int:
        """Return the index of the first message that is too new to leave."""
        if counted_in is ProtectionUnit.MESSAGES:
            return max(0, len(self.messages) - newest)
        turns: set[int] = set()
        for index in reversed(range(len(self.messages))):
            turns.add(self.messages[index].items[0].turn)
            if len(turns) > max(1, newest):
                return index + 1
        return 0

    def rank(
        self, untouched: frozenset[int], *, together: bool, looks_first: bool
    ) -> list[RankedMessages]:
        """Return the messages that may leave, ranked; an exchange ranks as its best message."""
        tokens, worth = self.tokens, self.priorities
        leaves_late = [not (looks_first and _is_read_only(calls)) for calls in self.calls]
        if not together:
            alone = map(RankedMessages, leaves_late, worth, tokens, zip(range(len(tokens))))
            return [one for one in alone if untouched.isdisjoint(one.indices)]
        return [
            RankedMessages(
                leaves_late[group[0]],
                max([worth[index] for index in group]),
                sum([tokens[index] for index in group]),
                group,
            )
            for group in self.exchanges
            if untouched.isdisjoint(group)
        ]


def choose_leaving(ranked: Sequence[RankedMessages], choice: PruningChoice, room: int) -> set[int]:
    """Return the indices, from `ranked` in order, that leave so that the rest fits into `room`."""
    is_lowest = choice is PruningChoice.REMOVE_LOWEST
    # What leaves first, or stays first, is at the start; equals stay in order, oldest first. Two
    # sorts by one value each are several times as fast as one sort by two.
    in_order = sorted(ranked, key=_WORTH, reverse=not is_lowest)
    in_order.sort(key=_LEAVES_LATE, reverse=not is_lowest)
    gone = set[int]()
    if is_lowest:
        taken = sum(one.tokens for one in ranked)
        for one in in_order:
            if taken <= room:
                break
            taken -= one.tokens
            gone.update(one.indices)
        return gone
    # Messages that are too large are skipped; without any room, even empty ones leave.
    is_room = room > 0
    for one in in_order:
        if is_room and one.tokens <= room:
            room -= one.tokens
        else:
            gone.update(one.indices)
    return gone


_LEAVES_LATE, _WORTH = itemgetter(0), itemgetter(1)


def _compute_priority(score: int, size: int, age: int) -> float:
    # Keep this order of additions: floating-point sums depend on it, and age breaks ties.
    recency = 1 / (1 + _FADE_RATE * age)
    small = 1 - size / _SMALL_TOKENS if size < _SMALL_TOKENS else 0.0
    return (
        score / 1000 * _ROLE_WEIGHT
        + recency * _AGE_WEIGHT
        + small * _SIZE_WEIGHT
        + recency * _NEWNESS_WEIGHT
    )


def _is_read_only(calls: Sequence[Item]) -> bool:
    """Check whether there are calls, and all of them only read."""
    return bool(calls) and all(
        isinstance(call.block, ToolCall)
        and normalize_tool_name(call.block.name) in _READ_ONLY_TOOLS
        for call in calls
    )

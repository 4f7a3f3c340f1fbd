"""Weighs a window's messages by author, age and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..blocks import ToolCall
from ..cut_points import is_carried
from ..digest import READ_TOOLS, normalize_tool_name, parse_names
from ..item import WindowItem
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
    def calls(self) -> Sequence[Sequence[WindowItem]]:
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

    def find_untouchable(self, newest: int) -> frozenset[int]:
        """Return the indices of the messages that stay: from `newest` on, pinned, or open."""
        carried = [i for i, one in enumerate(self.messages) if any(map(is_carried, one.items))]
        return frozenset([*range(newest, len(self.messages)), *carried])

    def is_read_only(self, index: int) -> bool:
        """Check whether the message has calls, and all of them only read."""
        calls = self.calls[index]
        return bool(calls) and all(
            isinstance(call.block, ToolCall)
            and normalize_tool_name(call.block.name) in _READ_ONLY_TOOLS
            for call in calls
        )


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

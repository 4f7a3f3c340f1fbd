"""How much a message is worth keeping: by whose it is, how new it is, and how little it takes."""

from collections.abc import Sequence

from ...blocks import ToolCall
from ...digest import READS, bare_name, names
from ...item import Item
from ...messages import Role

SCORES = {Role.USER: 850, Role.DEVELOPER: 850, Role.TOOL_RESULT: 600, Role.ASSISTANT: 500}
"""Of 1,000; instructions are said in the user's place."""
WITH_CALLS = 650
"""Of a model's message that calls a tool."""
LOOKS = READS | names(
    "codesearch fetch fetchurl find findfiles glob globfiles grep grepsearch list listdir "
    "listdirectory listfiles ls search searchfiles tree urlfetch webfetch websearch"
)
"""Tools that only look, and can look again, by their bare names."""

_OF_ROLE, _OF_AGE, _OF_SIZE, _OF_NEWNESS = 0.6, 0.3, 0.1, 0.05
_FADES = 0.1
"""How fast a message loses weight with each that comes after it."""
_SMALL = 500
"""Tokens from which on a message gains nothing by its size."""


def score(role: Role, *, calls: bool) -> int:
    """The worth of what a message is."""
    return WITH_CALLS if calls else SCORES[role]


def priorities(scores: Sequence[int], tokens: Sequence[int]) -> tuple[float, ...]:
    """Which of the messages to keep before others: the higher."""
    ages = range(len(scores) - 1, -1, -1)
    return tuple(map(_priority, scores, tokens, ages))


def only_look(calls: Sequence[Item]) -> bool:
    """Whether there are calls of tools, all of which only look."""
    for call in calls:
        if isinstance(call.block, ToolCall) and bare_name(call.block.name) not in LOOKS:
            return False
    return bool(calls)


def _priority(worth: int, size: int, age: int) -> float:
    # In this order of additions: floating-point sums depend on it, and ties are broken by age.
    recency = 1 / (1 + _FADES * age)
    small = 1 - size / _SMALL if size < _SMALL else 0.0
    return worth / 1000 * _OF_ROLE + recency * _OF_AGE + small * _OF_SIZE + recency * _OF_NEWNESS

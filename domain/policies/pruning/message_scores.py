"""How much a message is worth keeping: by whose it is, how new it is, and how little it takes."""

from collections.abc import Sequence

from ...blocks import ToolCall
from ...digest import READ_TOOLS, normalize_tool_name, parse_names
from ...item import Item
from ...messages import Role

_ROLE_SCORES = {Role.USER: 850, Role.DEVELOPER: 850, Role.TOOL_RESULT: 600, Role.ASSISTANT: 500}
"""Of 1,000; instructions are said in the user's place."""
_SCORE_WITH_CALLS = 650
"""Of a model's message that calls a tool."""
_READ_ONLY_TOOLS = READ_TOOLS | parse_names(
    "codesearch fetch fetchurl find findfiles glob globfiles grep grepsearch list listdir "
    "listdirectory listfiles ls search searchfiles tree urlfetch webfetch websearch"
)
"""Tools that only look, and can look again, by their bare names."""

_ROLE_WEIGHT, _AGE_WEIGHT, _SIZE_WEIGHT, _NEWNESS_WEIGHT = 0.6, 0.3, 0.1, 0.05
_FADE_RATE = 0.1
"""How fast a message loses weight with each that comes after it."""
_SMALL_TOKENS = 500
"""Tokens from which on a message gains nothing by its size."""


def score_message(role: Role, *, calls: bool) -> int:
    """The worth of what a message is."""
    return _SCORE_WITH_CALLS if calls else _ROLE_SCORES[role]


def compute_priorities(scores: Sequence[int], tokens: Sequence[int]) -> tuple[float, ...]:
    """Which of the messages to keep before others: the higher."""
    ages = range(len(scores) - 1, -1, -1)
    return tuple(map(_compute_priority, scores, tokens, ages))


def is_read_only(calls: Sequence[Item]) -> bool:
    """Whether there are calls of tools, all of which only look."""
    for call in calls:
        if (
            isinstance(call.block, ToolCall)
            and normalize_tool_name(call.block.name) not in _READ_ONLY_TOOLS
        ):
            return False
    return bool(calls)


def _compute_priority(worth: int, size: int, age: int) -> float:
    # In this order of additions: floating-point sums depend on it, and ties are broken by age.
    recency = 1 / (1 + _FADE_RATE * age)
    small = 1 - size / _SMALL_TOKENS if size < _SMALL_TOKENS else 0.0
    return (
        worth / 1000 * _ROLE_WEIGHT
        + recency * _AGE_WEIGHT
        + small * _SIZE_WEIGHT
        + recency * _NEWNESS_WEIGHT
    )

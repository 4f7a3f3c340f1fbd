"""Scores how much a message is worth keeping: by its author, its age and its size."""

from collections.abc import Sequence

from ...blocks import ToolCall
from ...digest import READ_TOOLS, normalize_tool_name, parse_names
from ...item import Item
from ...messages import Role

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


def score_message(role: Role, *, calls: bool) -> int:
    return _SCORE_WITH_CALLS if calls else _ROLE_SCORES[role]


def compute_priorities(scores: Sequence[int], tokens: Sequence[int]) -> tuple[float, ...]:
    """Return the priority of each message; higher ones are kept before lower ones."""
    ages = range(len(scores) - 1, -1, -1)
    return tuple(map(_compute_priority, scores, tokens, ages))


def is_read_only(calls: Sequence[Item]) -> bool:
    """Check whether there are calls, and all of them only read."""
    for call in calls:
        if (
            isinstance(call.block, ToolCall)
            and normalize_tool_name(call.block.name) not in _READ_ONLY_TOOLS
        ):
            return False
    return bool(calls)


def _compute_priority(worth: int, size: int, age: int) -> float:
    # Keep this order of additions: floating-point sums depend on it, and age breaks ties.
    recency = 1 / (1 + _FADE_RATE * age)
    small = 1 - size / _SMALL_TOKENS if size < _SMALL_TOKENS else 0.0
    return (
        worth / 1000 * _ROLE_WEIGHT
        + recency * _AGE_WEIGHT
        + small * _SIZE_WEIGHT
        + recency * _NEWNESS_WEIGHT
    )

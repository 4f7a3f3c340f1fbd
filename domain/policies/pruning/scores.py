"""How much a message is worth keeping: by whose it is, how new it is, and how little it takes."""

from collections.abc import Sequence

from ...blocks import ToolCall
from ...digest import READS, bare_name, names
from ...messages import Message, Role

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


def score(message: Message) -> int:
    """The worth of what a message is."""
    role = message.role
    if role is Role.ASSISTANT and ToolCall in [type(item.block) for item in message.items]:
        return WITH_CALLS
    return SCORES[role]


def priorities(scores: Sequence[int], tokens: Sequence[int]) -> tuple[float, ...]:
    """Which of the messages to keep before others: the higher."""
    newest = len(scores) - 1
    return tuple(
        _priority(worth, size, 1 / (1 + _FADES * (newest - index)))
        for index, (worth, size) in enumerate(zip(scores, tokens, strict=True))
    )


def only_looks(message: Message) -> bool:
    """Whether a message calls tools, all of which only look."""
    if message.role is not Role.ASSISTANT:
        return False
    blocks = [item.block for item in message.items]
    called = [bare_name(block.name) for block in blocks if isinstance(block, ToolCall)]
    return bool(called) and LOOKS.issuperset(called)


def _priority(worth: int, size: int, recency: float) -> float:
    # In this order of additions: floating-point sums depend on it, and ties are broken by age.
    small = max(0.0, 1 - size / _SMALL)
    return worth / 1000 * _OF_ROLE + recency * _OF_AGE + small * _OF_SIZE + recency * _OF_NEWNESS

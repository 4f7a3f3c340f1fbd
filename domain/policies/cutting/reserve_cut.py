"""Where the newest tokens begin that are to be kept: at a message, and never at a tool result."""

from collections.abc import Sequence
from typing import NamedTuple

from ...blocks import AnyBlock, Kind, ToolCall, ToolResult
from ...item import Item
from ...messages import Message, Role, messages_back, role_of
from ...token_budget import IMAGE_CHARS
from ...window import Window
from ..measuring.measure import Measure
from .budget_walk import reached

SUMMARY = -1
"""Index of the summary, where a walk over messages takes it for the oldest of them."""


class Walk(NamedTuple):
    """How far a walk back from the newest block came, in positions."""

    giant: int | None = None
    """The block, or message, that reaches the budget all by itself, where one does."""
    reached: int | None = None
    """Where the walk ends for it: at that message, or the nearest before it that is no tool
    result; None where there is none."""
    first_kept: int | None = None
    """Where the kept window is to begin; None where nothing would leave."""


def walk_back(
    window: Window, keep: int, measure: Measure | None = None, *, passes_developer: bool = False
) -> Walk:
    """The walk over the window's blocks, or over its messages where these are measured anew.

    `passes_developer` has it go on from a developer's message to the next user's message or
    tool result: so it may come to rest on a result.
    """
    items = window.open_to_cut
    if not items:
        return Walk()
    base = 0
    if measure is None:
        giant, ends = _by_blocks(items, window.running, keep)
    else:
        giant, ends = _by_messages(items, keep, measure)
        base = SUMMARY if _only_summary_precedes(window) else 0
    start = base or _past_results(items)
    cut = start if ends is None else ends
    if passes_developer:
        cut = _off_developer(items, cut, base)
    return Walk(
        None if giant is None else items[giant].position,
        None if ends is None else items[ends].position,
        items[cut].position if cut > base else None,
    )


def _only_summary_precedes(window: Window) -> bool:
    """Whether the last boundary kept nothing: the summary is then the oldest entry.

    A cut at the first block removes that entry, although no block leaves by it.
    """
    boundary = window.boundary
    return boundary is not None and window.open_to_cut[0].position > boundary.after


def message_tokens(message: Message, measure: Measure) -> int:
    """Tokens of a message by the length of all that is said in it."""
    length = 0
    for item in message.items:
        length += _length(item.block, measure)
    return measure.tokens_of(length)


def _length(block: AnyBlock, measure: Measure) -> int:
    if isinstance(block, ToolCall):
        return measure.length(block.name) + measure.length(block.arguments)
    if isinstance(block, ToolResult):
        return measure.length(block.text) + IMAGE_CHARS * len(block.media)
    return measure.length(block.text) + (IMAGE_CHARS if block.media is not None else 0)


def _by_blocks(
    items: Sequence[Item], running: Sequence[int], keep: int
) -> tuple[int | None, int | None]:
    """By the prefix sums: the giant that reaches the budget, and where the walk ends."""
    index = reached(running, keep)
    if index is None:
        return None, None
    return index if items[index].tokens >= keep else None, _opening(items, index)


def _by_messages(
    items: Sequence[Item], keep: int, measure: Measure
) -> tuple[int | None, int | None]:
    """By messages as they are measured: no more of them than are kept."""
    held, giant, is_reached = 0, None, False
    for message in messages_back(items):
        if not is_reached:
            tokens = message_tokens(message, measure)
            held += tokens
            is_reached = held >= keep
            giant = message.begins if is_reached and tokens >= keep else None
        if is_reached and message.role is not Role.TOOL_RESULT:
            return giant, message.begins
    return giant, None


def _past_results(items: Sequence[Item]) -> int:
    """Answers to calls that left long ago cannot open a view, so they are not kept for it."""
    return next((i for i, item in enumerate(items) if item.kind is not Kind.TOOL_RESULT), 0)


def _opening(items: Sequence[Item], index: int) -> int:
    """Where the message of the item begins, or the nearest before it that is no tool result."""
    while index:
        start = _message_start(items, index)
        if start < index:
            index = start
        elif items[index].block.kind is Kind.TOOL_RESULT:
            index -= 1
        else:
            break
    return index


def _message_start(items: Sequence[Item], index: int) -> int:
    """Where an item's message begins; results may have come in between its pieces.

    Looks at the message at hand alone, however long the history is.
    """
    name = items[index].block.message_id
    if name is None:
        return index
    first = at = index
    while at:
        at -= 1
        if items[at].block.message_id == name:
            first = at
        elif items[at].kind is not Kind.TOOL_RESULT:
            break
    return first


def _off_developer(items: Sequence[Item], cut: int, base: int) -> int:
    if cut == SUMMARY or role_of(items[cut]) is not Role.DEVELOPER:
        return cut
    ends = {Role.USER, Role.TOOL_RESULT}
    for at in range(cut, len(items)):
        if role_of(items[at]) in ends:
            return at
    while cut > base and role_of(items[cut]) is Role.DEVELOPER:
        cut -= 1
    return cut

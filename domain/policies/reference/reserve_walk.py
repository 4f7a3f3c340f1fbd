"""Finds where the newest tokens to keep begin: at a message, and never at a tool result."""

from collections.abc import Sequence
from typing import NamedTuple

from ...blocks import Kind
from ...counting.estimators import Estimator
from ...item import Item
from ...messages import Role, find_role, iter_messages_back
from ...window import Window, find_budget_index

_AT_SUMMARY = -1
"""The index of the summary, for a walk over messages that counts it as the oldest one."""


class ReserveWalk(NamedTuple):
    """How far a walk back from the newest block came, in positions."""

    oversized_position: int | None = None
    """The block or message that reaches the budget by itself, if there is one."""
    first_kept: int | None = None
    """Where the kept window begins; None if nothing would leave."""


def walk_back(
    window: Window, keep: int, estimator: Estimator | None, *, passes_developer: bool
) -> ReserveWalk:
    """Walk back over the window's blocks, or over its messages if an estimator is given.

    `passes_developer` moves the cut from a developer's message on to the next user's message or
    tool result, so that it may be at a result.
    """
    items = window.open_to_cut
    if not items:
        return ReserveWalk()
    base = 0
    if estimator is None:
        giant, ends = _walk_blocks(items, window.running, keep)
    else:
        giant, ends = _walk_messages(items, keep, estimator)
        base = _AT_SUMMARY if _is_only_summary_before(window) else 0
    start = base or _skip_results(items)
    cut = start if ends is None else ends
    if passes_developer:
        cut = _move_off_developer(items, cut, base)
    return ReserveWalk(
        None if giant is None else items[giant].position,
        items[cut].position if cut > base else None,
    )


def _is_only_summary_before(window: Window) -> bool:
    """Check whether the last boundary kept nothing, so that the summary is the oldest entry.

    A cut at the first block removes that entry, although no block leaves by it.
    """
    boundary = window.boundary
    return boundary is not None and window.open_to_cut[0].position > boundary.after


def _walk_blocks(
    items: Sequence[Item], running: Sequence[int], keep: int
) -> tuple[int | None, int | None]:
    """Return the item that reaches the budget by itself and the walk's end, by prefix sums."""
    index = find_budget_index(running, keep)
    if index is None:
        return None, None
    return index if items[index].tokens >= keep else None, _find_opening(items, index)


def _walk_messages(
    items: Sequence[Item], keep: int, estimator: Estimator
) -> tuple[int | None, int | None]:
    """Return the same by measured messages, reading no more of them than are kept."""
    held, giant, is_reached = 0, None, False
    for message in iter_messages_back(items):
        if not is_reached:
            tokens = estimator.count_message([item.block for item in message.items])
            held += tokens
            is_reached = held >= keep
            giant = message.start if is_reached and tokens >= keep else None
        if is_reached and message.role is not Role.TOOL_RESULT:
            return giant, message.start
    return giant, None


def _skip_results(items: Sequence[Item]) -> int:
    """Skip answers to calls that left earlier: a view cannot begin with them."""
    return next((i for i, item in enumerate(items) if item.kind is not Kind.TOOL_RESULT), 0)


def _find_opening(items: Sequence[Item], index: int) -> int:
    """Return the start of the item's message, or of an earlier one that is not a tool result."""
    while index:
        start = _find_message_start(items, index)
        if start < index:
            index = start
        elif items[index].block.kind is Kind.TOOL_RESULT:
            index -= 1
        else:
            break
    return index


def _find_message_start(items: Sequence[Item], index: int) -> int:
    """Return where an item's message begins; results may be between its pieces.

    Reads only that message, however long the history is.
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


def _move_off_developer(items: Sequence[Item], cut: int, base: int) -> int:
    if cut == _AT_SUMMARY or find_role(items[cut]) is not Role.DEVELOPER:
        return cut
    ends = {Role.USER, Role.TOOL_RESULT}
    for at in range(cut, len(items)):
        if find_role(items[at]) in ends:
            return at
    while cut > base and find_role(items[cut]) is Role.DEVELOPER:
        cut -= 1
    return cut

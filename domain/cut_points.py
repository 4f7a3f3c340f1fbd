"""Finds where a history may be cut; a legal cut is in the set of every rule."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from .blocks import UNSENT_KINDS, BlockKind, ToolCall, ToolResult
from .item import WindowItem, get_place, group_blocks
from .ranges import Ranges
from .window import Window

PAIR_KINDS = frozenset({BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT})
"""A hidden half of a pair always leaves a replacement text, because the other half needs one."""


def find_legal_cuts(window: Window) -> frozenset[int]:
    """Return the positions at which the window may be cut, each being the first kept item.

    Items before it in the view may leave, items after it stay.
    """
    return frozenset.intersection(*(rule(window) for rule in CUT_RULES))


def find_nearest_cut(cuts: frozenset[int], wanted: int) -> int | None:
    """Return the legal cut closest to the wanted one; of two equally close, the earlier one."""
    ordered = sorted(cuts)
    at = bisect_left(ordered, wanted)
    beside = ordered[max(0, at - 1) : at + 1]
    return min(beside, key=lambda cut: (abs(cut - wanted), cut), default=None)


def find_cuts_between_groups(window: Window) -> frozenset[int]:
    """Return the cuts that keep each call with its result, and the pieces of one message."""
    items = window.open_to_cut
    last_of: dict[int, int] = {}
    for group in group_blocks(items):
        places = [item.place for item in group]
        last_of[min(places)] = max(*places, last_of.get(min(places), 0))
    legal: set[int] = set()
    parted_up_to = 0
    for item in items:
        if item.place > parted_up_to:
            legal.add(item.position)
        parted_up_to = max(parted_up_to, last_of.get(item.place, 0))
    return frozenset(legal)


def find_cuts_that_remove_blocks(window: Window) -> frozenset[int]:
    """Return the cuts that remove at least one block that a summary can cover."""
    hidden = find_hidden_positions(window)
    goes_after = min(
        (
            max(item.place for item in group)
            for group in window.groups
            if not any(map(is_carried, group))
            and not (hidden and all(item.position in hidden for item in group))
        ),
        default=window.after,
    )
    items = window.open_to_cut
    goes = bisect_right(items, goes_after, key=get_place)
    return frozenset([item.position for item in items[goes:]])


def find_cuts_with_visible_blocks(window: Window) -> frozenset[int]:
    """Return the cuts after which a block shows, or that carry one over.

    Hidden and unsent blocks alone are not a view.
    """
    last = window.after
    if not any(map(is_carried, window.items)):
        unseen = find_unsent_positions(window)
        last = max((i.place for i in window.items if i.position not in unseen), default=0)
    return frozenset(item.position for item in window.open_to_cut if item.place <= last)


CUT_RULES = (
    find_cuts_between_groups,
    find_cuts_that_remove_blocks,
    find_cuts_with_visible_blocks,
)


def is_carried(item: WindowItem) -> bool:
    """Check whether every cut carries the item over: it is pinned, or a call without an answer."""
    return item.is_pinned or item.is_open


def find_hidden_positions(window: Window) -> Ranges:
    """Return the hidden blocks, including replaced ones; a summary must not repeat them."""
    return Ranges.of([*window.hides, *window.earlier_replacements])


def find_unsent_positions(window: Window) -> Ranges:
    """Return the blocks that the next boundary hides anyway, and those that no model is sent."""
    hides = {position for position, text in window.hides.items() if text is None}
    return Ranges.of(
        [
            item.position
            for item in window.items
            if item.block.kind in UNSENT_KINDS
            or (item.position in hides and not item.is_pinned and item.block.kind not in PAIR_KINDS)
        ]
    )


def find_carried_positions(window: Window, cut: int) -> frozenset[int]:
    """Return the positions before the cut that stay: pins and open calls with their groups.

    A call that an earlier boundary carried may have a later piece of its message after this cut,
    and stays with it.
    """
    return frozenset(
        item.position
        for group in window.groups
        if any(item.is_pinned or item.is_open or item.place >= cut for item in group)
        for item in group
        if item.place < cut
    )


class Orphans(NamedTuple):
    """The ids of the calls and results that an unrepaired plan would separate."""

    results: frozenset[str]
    calls: frozenset[str]


def find_orphans(items: Iterable[WindowItem], stays: Ranges) -> Orphans:
    """Return the staying items whose other half leaves.

    Halves match by the id of the call, as at a provider. Items that already lacked their other half
    are not counted.
    """
    calls, results = set[str](), set[str]()
    calls_left, results_left = set[str](), set[str]()
    for item in items:
        if isinstance(item.block, ToolCall):
            (calls if item.position in stays else calls_left).add(item.block.tool_call_id)
        elif isinstance(item.block, ToolResult):
            (results if item.position in stays else results_left).add(item.block.tool_call_id)
    return Orphans(
        results=frozenset((results & calls_left) - calls),
        calls=frozenset((calls & results_left) - results),
    )

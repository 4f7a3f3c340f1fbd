"""Finds the pins and open calls that a cut carries over, and the cuts that remove something."""

from bisect import bisect_right

from ..item import Item, get_place
from ..ranges import Ranges
from ..window import Window


def is_carried(item: Item) -> bool:
    """Check whether the item is pinned, or is a call without an answer."""
    return item.is_pinned or item.is_open


def find_cuts_that_remove_blocks(window: Window) -> frozenset[int]:
    """Return the cuts that remove at least one block that a summary can cover."""
    unsaid = find_hidden_positions(window)
    goes_after = min(
        (
            max(item.place for item in group)
            for group in window.groups
            if not any(map(is_carried, group))
            and not (unsaid and all(item.position in unsaid for item in group))
        ),
        default=window.after,
    )
    items = window.open_to_cut
    goes = bisect_right(items, goes_after, key=get_place)
    return frozenset([item.position for item in items[goes:]])


def find_hidden_positions(window: Window) -> Ranges:
    """Return the hidden blocks, including replaced ones; a summary must not repeat them."""
    replaced = window.boundary.replacements if window.boundary else ()
    return Ranges.of([*window.hides, *(replacement.position for replacement in replaced)])


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

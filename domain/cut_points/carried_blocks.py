"""Pins and open calls stay in every view: a cut carries them over, and must leave some to go."""

from bisect import bisect_right

from ..item import Item, get_place
from ..ranges import Ranges
from ..window import Window


def is_carried(item: Item) -> bool:
    """Pinned by somebody, or a call that still waits for its answer."""
    return item.is_pinned or item.is_open


def find_cuts_that_remove_blocks(window: Window) -> frozenset[int]:
    """Cuts that take out at least one block that a summary can stand for."""
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
    """What was hidden, now or behind a text that still shows: a summary must not repeat it."""
    replaced = window.boundary.replacements if window.boundary else ()
    return Ranges.of([*window.hides, *(replacement.position for replacement in replaced)])


def find_carried_positions(window: Window, cut: int) -> frozenset[int]:
    """Positions before the cut that stay: pins and open calls, with their pairs and messages whole.

    A call that was open at an earlier boundary was carried then, and a later piece of its message
    may stand behind this cut: it stays with that.
    """
    return frozenset(
        item.position
        for group in window.groups
        if any(item.is_pinned or item.is_open or item.place >= cut for item in group)
        for item in group
        if item.place < cut
    )

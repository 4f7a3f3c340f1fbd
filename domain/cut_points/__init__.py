"""Finds where a history may be cut; a legal cut is in the set of every rule."""

from bisect import bisect_left

from ..window import Window
from .carried_blocks import find_cuts_that_remove_blocks
from .message_cuts import find_cuts_between_messages
from .pair_cuts import find_cuts_between_pairs
from .visible_cuts import find_cuts_with_visible_blocks

CUT_RULES = (
    find_cuts_between_pairs,
    find_cuts_between_messages,
    find_cuts_that_remove_blocks,
    find_cuts_with_visible_blocks,
)


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

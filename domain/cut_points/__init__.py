"""Where a history may be cut: each rule gives a set of positions, and a legal cut is in all."""

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
    """Positions at which the window may be cut, the item there being the first kept.

    What stands before that item in the view may leave, what stands behind it stays.
    """
    return frozenset.intersection(*(rule(window) for rule in CUT_RULES))


def find_nearest_cut(cuts: frozenset[int], wanted: int) -> int | None:
    """The legal cut closest to the wanted one; of two as close, the one that keeps more."""
    ordered = sorted(cuts)
    at = bisect_left(ordered, wanted)
    beside = ordered[max(0, at - 1) : at + 1]
    return min(beside, key=lambda cut: (abs(cut - wanted), cut), default=None)

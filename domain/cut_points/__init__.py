"""Where a history may be cut: each rule gives a set of positions, and a legal cut is in all."""

from bisect import bisect_left

from ..window import Window
from .carried import leaves_something_to_go
from .messages import keeps_messages_whole
from .pairs import keeps_pairs_together
from .shown import leaves_something_to_see

RULES = (
    keeps_pairs_together,
    keeps_messages_whole,
    leaves_something_to_go,
    leaves_something_to_see,
)


def legal_cuts(window: Window) -> frozenset[int]:
    """Positions at which the window may be cut, the item there being the first kept.

    What stands before that item in the view may leave, what stands behind it stays.
    """
    return frozenset.intersection(*(rule(window) for rule in RULES))


def nearest(cuts: frozenset[int], wanted: int) -> int | None:
    """The legal cut closest to the wanted one; of two as close, the one that keeps more."""
    ordered = sorted(cuts)
    at = bisect_left(ordered, wanted)
    beside = ordered[max(0, at - 1) : at + 1]
    return min(beside, key=lambda cut: (abs(cut - wanted), cut), default=None)

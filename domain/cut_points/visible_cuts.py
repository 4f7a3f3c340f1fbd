"""A cut leaves something to see: what was hidden, and what no model is sent, is no view."""

from ..blocks import UNSENT_KINDS, Kind
from ..ranges import Ranges
from ..window import Window
from .carried_blocks import is_carried

PAIR_KINDS = frozenset({Kind.TOOL_CALL, Kind.TOOL_RESULT})
"""Half of a pair that is hidden always leaves a text in its place, or the other half would lie."""


def find_cuts_with_visible_blocks(window: Window) -> frozenset[int]:
    """Cuts behind which a block shows, or in front of which one is carried over."""
    last = window.after
    if not any(map(is_carried, window.items)):
        unseen = find_unsent_positions(window)
        last = max((i.place for i in window.items if i.position not in unseen), default=0)
    return frozenset(item.position for item in window.open_to_cut if item.place <= last)


def find_unsent_positions(window: Window) -> Ranges:
    """What leaves with the next boundary whatever it cuts, and what no model is sent."""
    hides = {position for position, text in window.hides.items() if text is None}
    return Ranges.of(
        [
            item.position
            for item in window.items
            if item.block.kind in UNSENT_KINDS
            or (item.position in hides and not item.is_pinned and item.block.kind not in PAIR_KINDS)
        ]
    )

"""A cut leaves something to see: what was hidden, and what no model is sent, is no view."""

from ..blocks import NOT_SENT, Kind
from ..ranges import Ranges
from ..window import Window
from .carried import is_carried

PAIRED = frozenset({Kind.TOOL_CALL, Kind.TOOL_RESULT})
"""Half of a pair that is hidden always leaves a text in its place, or the other half would lie."""


def leaves_something_to_see(window: Window) -> frozenset[int]:
    """Cuts behind which a block shows, or in front of which one is carried over."""
    last = window.after
    if not any(map(is_carried, window.items)):
        unseen = never_seen(window)
        last = max((i.place for i in window.items if i.position not in unseen), default=0)
    return frozenset(item.position for item in window.open_to_cut if item.place <= last)


def never_seen(window: Window) -> Ranges:
    """What leaves with the next boundary whatever it cuts, and what no model is sent."""
    hides = {position for position, text in window.hides.items() if text is None}
    return Ranges.of(
        [
            item.position
            for item in window.items
            if item.block.kind in NOT_SENT
            or (item.position in hides and not item.is_pinned and item.block.kind not in PAIRED)
        ]
    )

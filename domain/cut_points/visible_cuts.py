"""Finds cuts that leave a visible block: hidden and unsent blocks alone are not a view."""

from ..blocks import UNSENT_KINDS, Kind
from ..ranges import Ranges
from ..window import Window
from .carried_blocks import is_carried

PAIR_KINDS = frozenset({Kind.TOOL_CALL, Kind.TOOL_RESULT})
"""A hidden half of a pair always leaves a replacement text, because the other half needs one."""


def find_cuts_with_visible_blocks(window: Window) -> frozenset[int]:
    """Return the cuts after which a block shows, or that carry one over."""
    last = window.after
    if not any(map(is_carried, window.items)):
        unseen = find_unsent_positions(window)
        last = max((i.place for i in window.items if i.position not in unseen), default=0)
    return frozenset(item.position for item in window.open_to_cut if item.place <= last)


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

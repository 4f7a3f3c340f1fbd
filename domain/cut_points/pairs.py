"""A cut never parts a tool call from its result."""

from ..window import Window
from .spans import cuts_outside


def keeps_pairs_together(window: Window) -> frozenset[int]:
    """Cuts that leave every result on its call's side."""
    items = window.open_to_cut
    return cuts_outside(
        items, ((item.call, item.position) for item in items if item.call is not None)
    )

"""Finds cuts that keep the pieces of one provider message together, such as parallel calls."""

from ..window import Window
from .spans import find_cuts_outside


def find_cuts_between_messages(window: Window) -> frozenset[int]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for item in window.open_to_cut:
        if message := item.message:
            first.setdefault(message, item.position)
            last[message] = item.position
    return find_cuts_outside(window.open_to_cut, zip(first.values(), last.values(), strict=True))

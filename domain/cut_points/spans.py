"""Finds the cuts outside given spans."""

from collections.abc import Iterable, Sequence

from ..item import Item


def find_cuts_outside(items: Sequence[Item], spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Return all positions except those inside a span; a span's first position is allowed."""
    reach: dict[int, int] = {}
    for first, last in spans:
        reach[first] = max(last, reach.get(first, last))
    legal: set[int] = set()
    parted_up_to = 0
    for item in items:
        if item.place > parted_up_to:
            legal.add(item.position)
        parted_up_to = max(parted_up_to, reach.get(item.position, 0))
    return frozenset(legal)

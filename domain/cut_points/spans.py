"""Turns spans that may not be parted into the positions where a cut is still legal."""

from collections.abc import Iterable, Sequence

from ..item import Item


def find_cuts_outside(items: Sequence[Item], spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """All items' positions but those that lie inside a span, its first place excepted."""
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

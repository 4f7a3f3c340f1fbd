"""Finds cuts that keep each tool call with its result."""

from collections.abc import Iterable

from ..blocks import ToolCall, ToolResult
from ..item import Item
from ..window import Window
from .spans import find_cuts_outside


def find_cuts_between_pairs(window: Window) -> frozenset[int]:
    items = window.open_to_cut
    return find_cuts_outside(
        items, ((item.call, item.place) for item in items if item.call is not None)
    )


def find_orphan_results(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the results that come without an earlier call among the items."""
    called: set[str] = set()
    orphans: list[Item] = []
    for item in items:
        if isinstance(item.block, ToolCall):
            called.add(item.block.tool_call_id)
        elif isinstance(item.block, ToolResult) and item.block.tool_call_id not in called:
            orphans.append(item)
    return tuple(orphans)

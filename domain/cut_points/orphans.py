"""Finds what an unrepaired plan would separate: results from calls, and calls from results."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..blocks import ToolCall, ToolResult
from ..item import Item
from ..ranges import Ranges


@dataclass(frozen=True, slots=True)
class Orphans:
    """The ids of the calls and results that a plan would separate."""

    results: frozenset[str]
    calls: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.results or self.calls)


def find_orphans(items: Iterable[Item], stays: Ranges) -> Orphans:
    """Return the staying items whose other half leaves.

    Halves match by the id of the call, as at a provider. Items that already lacked their other half
    are not counted.
    """
    calls, results = set[str](), set[str]()
    calls_left, results_left = set[str](), set[str]()
    for item in items:
        if isinstance(item.block, ToolCall):
            (calls if item.position in stays else calls_left).add(item.block.tool_call_id)
        elif isinstance(item.block, ToolResult):
            (results if item.position in stays else results_left).add(item.block.tool_call_id)
    return Orphans(
        results=frozenset((results & calls_left) - calls),
        calls=frozenset((calls & results_left) - results),
    )

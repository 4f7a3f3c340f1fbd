"""What a raw plan would part: results whose call leaves, and calls whose result does."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..blocks import ToolCall, ToolResult
from ..item import Item
from ..ranges import Ranges


@dataclass(frozen=True, slots=True)
class Orphans:
    """What a plan leaves alone, by the names of the calls."""

    results: frozenset[str]
    calls: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.results or self.calls)


def find_orphans(items: Iterable[Item], stays: Ranges) -> Orphans:
    """Of the items at positions that stay, those whose other half leaves.

    Halves are told by the name of the call, as a provider does. What had no other half before is
    not the plan's doing.
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

"""A history in two zones, and how seed 004's program moved the cut between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import PROMPTS, Kind
from ...item import Item
from ...messages import message_end, message_start


@dataclass(frozen=True, slots=True)
class Zones:
    """The history in two: what leaves for a summary, and what is kept word for word."""

    compact: tuple[Item, ...]
    preserve: tuple[Item, ...]

    @property
    def orphans_a_result(self) -> bool:
        """Whether what is kept begins with the answer to a call that leaves."""
        return self._begins is Kind.TOOL_RESULT

    @property
    def splits_turn(self) -> bool:
        return self._begins is not None and self._begins not in PROMPTS

    @property
    def _begins(self) -> Kind | None:
        return self.preserve[0].kind if self.compact and self.preserve else None


def stepped_back(items: Sequence[Item], index: int) -> int:
    """Where the original's correction moves a cut: off results, and off a message with calls.

    It stops at the second message, and may come to rest on the result of an earlier call.
    """
    if index <= 0 or index >= len(items):
        return index
    floor = message_end(items, 0)
    while index > floor and items[index].kind is Kind.TOOL_RESULT:
        index = message_start(items, index - 1)
    calls = any(item.kind is Kind.TOOL_CALL for item in items[index : message_end(items, index)])
    if index > floor and calls:
        index = message_start(items, index - 1)
    return max(index, floor)

"""A history in two zones, and how seed 004's program moved the cut between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import PROMPT_KINDS, Kind
from ...item import Item
from ...messages import find_message_end, find_message_start


@dataclass(frozen=True, slots=True)
class Zones:
    """The history in two: what leaves for a summary, and what is kept word for word."""

    leaving_items: tuple[Item, ...]
    kept_items: tuple[Item, ...]

    @property
    def has_orphan_result(self) -> bool:
        """Whether what is kept begins with the answer to a call that leaves."""
        return self._first_kind is Kind.TOOL_RESULT

    @property
    def is_split_turn(self) -> bool:
        return self._first_kind is not None and self._first_kind not in PROMPT_KINDS

    @property
    def _first_kind(self) -> Kind | None:
        return self.kept_items[0].kind if self.leaving_items and self.kept_items else None


def step_back(items: Sequence[Item], index: int) -> int:
    """Where the original's correction moves a cut: off results, and off a message with calls.

    It stops at the second message, and may come to rest on the result of an earlier call.
    """
    if index <= 0 or index >= len(items):
        return index
    floor = find_message_end(items, 0)
    while index > floor and items[index].kind is Kind.TOOL_RESULT:
        index = find_message_start(items, index - 1)
    calls = any(
        item.kind is Kind.TOOL_CALL for item in items[index : find_message_end(items, index)]
    )
    if index > floor and calls:
        index = find_message_start(items, index - 1)
    return max(index, floor)

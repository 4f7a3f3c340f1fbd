"""Divides a history into two zones, and moves the cut as the program of seed 004 does."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import PROMPT_KINDS, Kind
from ...item import Item
from ...messages import find_message_end, find_message_start


@dataclass(frozen=True, slots=True)
class Zones:
    """The items that leave for a summary, and those that are kept word for word."""

    leaving_items: tuple[Item, ...]
    kept_items: tuple[Item, ...]

    @property
    def has_orphan_result(self) -> bool:
        return self._first_kind is Kind.TOOL_RESULT

    @property
    def is_split_turn(self) -> bool:
        return self._first_kind is not None and self._first_kind not in PROMPT_KINDS

    @property
    def _first_kind(self) -> Kind | None:
        return self.kept_items[0].kind if self.leaving_items and self.kept_items else None


def step_back(items: Sequence[Item], index: int) -> int:
    """Return where the original moves a cut: off results, and off a message with calls.

    It stops at the second message, and may end at the result of an earlier call.
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

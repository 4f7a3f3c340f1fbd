"""Finds old, long tool results: all but their beginning can leave, without a summary."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...blocks import Kind
from ...compaction_events import Trim
from ...item import Item
from ...messages import find_message_start, find_role
from ..measuring.text_measure import TextMeasure


@dataclass(frozen=True, slots=True)
class OldResults:
    """Which results are too long once they are old, and how much of them stays."""

    max_chars: int
    """The longest result that stays whole, in the unit of the measure."""
    kept_chars: int
    recent_messages: int
    """The number of newest messages that stay whole; below 0 means 0."""
    measure: TextMeasure

    def list_trims(self, items: Sequence[Item]) -> tuple[Trim, ...]:
        """Return trims to their beginnings, whether or not these save anything."""
        cuts = self.list_cuts(items[: self.find_recent_start(items)])
        return tuple(Trim(position=item.position, head=head) for item, head in cuts)

    def list_cuts(self, items: Iterable[Item]) -> list[tuple[Item, int]]:
        """Return the items that are too long, and how many characters of each may stay."""
        return [
            (item, self._fit_head(item.block.text))
            for item in items
            if item.block.kind is _RESULT
            and self.measure.measure_length(item.block.text) > self.max_chars
        ]

    def find_recent_start(self, items: Sequence[Item]) -> int:
        """Return the index where the newest messages begin; 0 if there are no older ones."""
        recent, start = self.recent_messages, len(items)
        while recent > 0 and start > 0:
            start = find_message_start(items, start - 1)
            if find_role(items[start]):
                recent -= 1
        return start

    def _fit_head(self, text: str) -> int:
        """Return how many whole characters fit."""
        if self.measure.measure_length(text[: self.kept_chars]) <= self.kept_chars:
            return self.kept_chars  # the usual case, since no character is shorter than a unit
        lengths = range(self.kept_chars + 1)
        return (
            bisect_right(
                lengths, self.kept_chars, key=lambda n: self.measure.measure_length(text[:n])
            )
            - 1
        )


_RESULT = Kind.TOOL_RESULT
"""Bound here because member access on an enumeration is slow."""

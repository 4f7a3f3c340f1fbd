"""Old tool results that are long: all of one but its beginning can leave, and need no summary."""

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
    """In the unit of the measure: what is no longer than this stays whole."""
    kept_chars: int
    recent_messages: int
    """Newest messages that stay whole; less than none is none."""
    measure: TextMeasure

    def list_trims(self, items: Sequence[Item]) -> tuple[Trim, ...]:
        """The beginnings that stay of them, by rule: whether it saves anything is not asked."""
        cuts = self.list_cuts(items[: self.find_recent_start(items)])
        return tuple(Trim(position=item.position, head=head) for item, head in cuts)

    def list_cuts(self, items: Iterable[Item]) -> list[tuple[Item, int]]:
        """Those of the items that are too long, and how many characters of each may stay."""
        return [
            (item, self._fit_head(item.block.text))
            for item in items
            if item.block.kind is _RESULT
            and self.measure.measure_length(item.block.text) > self.max_chars
        ]

    def find_recent_start(self, items: Sequence[Item]) -> int:
        """Where the newest messages begin, so many of them; 0 where there are no others."""
        recent, start = self.recent_messages, len(items)
        while recent > 0 and start > 0:
            start = find_message_start(items, start - 1)
            if find_role(items[start]):
                recent -= 1
        return start

    def _fit_head(self, text: str) -> int:
        """Characters that may stay: as many whole ones as have room."""
        if self.measure.measure_length(text[: self.kept_chars]) <= self.kept_chars:
            return self.kept_chars  # nearly always so, for no character is shorter than the unit
        lengths = range(self.kept_chars + 1)
        return (
            bisect_right(
                lengths, self.kept_chars, key=lambda n: self.measure.measure_length(text[:n])
            )
            - 1
        )


_RESULT = Kind.TOOL_RESULT
"""Named here, for an enumeration takes long to be asked for one of its own."""

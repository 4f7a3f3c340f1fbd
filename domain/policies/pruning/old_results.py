"""Old tool results that are long: all of one but its beginning can leave, and need no summary."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import Kind
from ...compaction_events import Trim
from ...messages import message_start, role_of
from ...window import Item
from ..measuring.measure import Measure


@dataclass(frozen=True, slots=True)
class OldResults:
    """Which results are too long once they are old, and how much of them stays."""

    over: int
    """In the unit of the measure: what is no longer than this stays whole."""
    to: int
    recent: int
    """Newest messages that stay whole; less than none is none."""
    measure: Measure

    def trims(self, items: Sequence[Item]) -> tuple[Trim, ...]:
        """The beginnings that stay of them, by rule: whether it saves anything is not asked."""
        return tuple(
            Trim(position=item.position, head=self._head(item.block.text))
            for item in items[: _recent_from(items, self.recent)]
            if item.kind is Kind.TOOL_RESULT and self.measure.length(item.block.text) > self.over
        )

    def _head(self, text: str) -> int:
        """Characters that may stay: as many whole ones as have room."""
        lengths = range(self.to + 1)
        return bisect_right(lengths, self.to, key=lambda n: self.measure.length(text[:n])) - 1


def _recent_from(items: Sequence[Item], recent: int) -> int:
    """Where the newest messages begin, so many of them; 0 where there are no others."""
    start = len(items)
    while recent > 0 and start > 0:
        start = message_start(items, start - 1)
        if role_of(items[start]):
            recent -= 1
    return start

"""Old tool results that are long: all of one but its beginning can leave, and need no summary."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...blocks import Kind
from ...compaction_events import Trim
from ...item import Item
from ...messages import message_start, role_of
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
        cuts = self.cuts(items[: self.recent_from(items)])
        return tuple(Trim(position=item.position, head=head) for item, head in cuts)

    def cuts(self, items: Iterable[Item]) -> list[tuple[Item, int]]:
        """Those of the items that are too long, and how many characters of each may stay."""
        return [
            (item, self._head(item.block.text))
            for item in items
            if item.block.kind is _RESULT and self.measure.length(item.block.text) > self.over
        ]

    def recent_from(self, items: Sequence[Item]) -> int:
        """Where the newest messages begin, so many of them; 0 where there are no others."""
        recent, start = self.recent, len(items)
        while recent > 0 and start > 0:
            start = message_start(items, start - 1)
            if role_of(items[start]):
                recent -= 1
        return start

    def _head(self, text: str) -> int:
        """Characters that may stay: as many whole ones as have room."""
        if self.measure.length(text[: self.to]) <= self.to:
            return self.to  # nearly always so, for no character is shorter than the unit
        lengths = range(self.to + 1)
        return bisect_right(lengths, self.to, key=lambda n: self.measure.length(text[:n])) - 1


_RESULT = Kind.TOOL_RESULT
"""Named here, for an enumeration takes long to be asked for one of its own."""

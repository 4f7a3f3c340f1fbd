"""Measures how full a timeline is: its system prompt, its summary, and the blocks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from ... import kdcube_timeline
from ...item import Item
from ...window import Window
from .text_measure import Rounding, SizeUnit, TextMeasure

_RECKONED = SizeUnit.RECKONED.value
_NO_REPLACEMENTS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TimelineSizes:
    """Counts tokens by the store's count, or by the length of texts in a unit."""

    unit: str
    counts_evicted: bool = False
    """Whether blocks that left the view but are still available count as in use."""

    def count_total(self, window: Window) -> int:
        # The store's count needs no look at the blocks.
        return self.count_total_with(
            window, () if self.unit == _RECKONED else self.sum_running(window)
        )

    def count_total_with(self, window: Window, running: Sequence[int]) -> int:
        """Return the tokens in use, given the prefix sums of the blocks that may leave."""
        if self.unit == _RECKONED:
            total = window.used_tokens
        else:
            # Items before the kept window were carried along: pins and open calls.
            carried = window.items if window.boundary else ()
            carried = [item for item in carried if item.place < window.cut_start]
            standing = self.count_text_tokens(window.summary.text) if window.summary else 0
            total = (
                self.count_overhead(window) + standing + running[-1] + sum(self.iter_sizes(carried))
            )
        return total + sum(self.iter_sizes(window.evicted)) if self.counts_evicted else total

    def count_overhead(self, window: Window) -> int:
        """Return the tokens in use apart from the blocks and their summary."""
        if self.unit == _RECKONED:
            used, blocks = window.used_tokens, window.running[-1]
            return used - blocks if used > blocks else 0
        return self._measure.count_tokens(window.system_prompt)

    def sum_running(self, window: Window) -> Sequence[int]:
        """Return prefix sums of the items that may leave."""
        if self.unit == _RECKONED:
            return window.running
        sizes = self.iter_sizes(window.open_to_cut, kdcube_timeline.map_replaced_texts(window))
        return tuple(accumulate(sizes, initial=0))

    def count_text_tokens(self, text: str) -> int:
        """Return the tokens of a text; 0 for a blank one."""
        return self._measure.count_tokens(text) if text and not text.isspace() else 0

    def iter_sizes(
        self, items: Iterable[Item], replaced: Mapping[int, str] = _NO_REPLACEMENTS
    ) -> Iterator[int]:
        """Return the tokens of each block, or of the text that replaces it."""
        if self.unit == _RECKONED:
            return (item.tokens for item in items)
        return self._iter_measured_sizes(items, replaced)

    def _iter_measured_sizes(
        self, items: Iterable[Item], replaced: Mapping[int, str]
    ) -> Iterator[int]:
        tokens = self._measure.count_tokens
        for item in items:
            text = replaced.get(item.position) or kdcube_timeline.render_shown_text(item.block)
            yield tokens(text) if text and not text.isspace() else 0

    @property
    def _measure(self) -> TextMeasure:
        return _MEASURES[self.unit]


_MEASURES = {unit.value: TextMeasure(unit, Rounding.DOWN, min_tokens=1) for unit in SizeUnit}

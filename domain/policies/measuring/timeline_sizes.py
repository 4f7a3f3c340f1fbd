"""How full a timeline is: its system prompt, what stands for earlier blocks, and the blocks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from ... import timeline
from ...item import Item
from ...window import Window
from .measure import Measure, Rounding, Unit

RECKONED = Unit.RECKONED.value
NOTHING: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TimelineSizes:
    """Tokens by the store's reckoning, or of texts in one unit or another."""

    unit: str
    counts_evicted: bool = False
    """Whether what left the view, and is still at hand, is in use as well."""

    def total(self, window: Window) -> int:
        """Tokens in use."""
        # What the store reckons is known without a look at the blocks.
        return self.total_of(window, () if self.unit == RECKONED else self.running(window))

    def total_of(self, window: Window, running: Sequence[int]) -> int:
        """The same, once it is known what the blocks take that may leave."""
        if self.unit == RECKONED:
            total = window.used
        else:
            # What stands in front of the kept window was carried there: pins, and open calls.
            carried = window.items if window.boundary else ()
            carried = [item for item in carried if item.place < window.begins]
            standing = self.tokens(window.summary.text) if window.summary else 0
            total = self.besides(window) + standing + running[-1] + sum(self.sizes(carried))
        return total + sum(self.sizes(window.evicted)) if self.counts_evicted else total

    def besides(self, window: Window) -> int:
        """Tokens that are in use besides the blocks and their summary."""
        if self.unit == RECKONED:
            used, blocks = window.used, window.running[-1]
            return used - blocks if used > blocks else 0
        return self._measure.tokens(window.system)

    def running(self, window: Window) -> Sequence[int]:
        """Prefix sums of what may leave."""
        if self.unit == RECKONED:
            return window.running
        sizes = self.sizes(window.open_to_cut, timeline.replaced(window))
        return tuple(accumulate(sizes, initial=0))

    def tokens(self, text: str) -> int:
        """Tokens of a text; nothing for one that is blank."""
        return self._measure.tokens(text) if text and not text.isspace() else 0

    def sizes(self, items: Iterable[Item], replaced: Mapping[int, str] = NOTHING) -> Iterator[int]:
        """Tokens of each block, as it shows where another text stands for it."""
        if self.unit == RECKONED:
            return (item.tokens for item in items)
        return self._measured(items, replaced)

    def _measured(self, items: Iterable[Item], replaced: Mapping[int, str]) -> Iterator[int]:
        tokens = self._measure.tokens
        for item in items:
            text = replaced.get(item.position) or timeline.shown(item.block)
            yield tokens(text) if text and not text.isspace() else 0

    @property
    def _measure(self) -> Measure:
        return _MEASURES[self.unit]


_MEASURES = {unit.value: Measure(unit, Rounding.DOWN, least=1) for unit in Unit}

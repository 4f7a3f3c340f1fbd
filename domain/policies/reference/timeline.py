"""Measures a timeline as kdcube does, and finds where it may be cut and where its turns begin."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from types import MappingProxyType

from ... import kdcube_timeline
from ...blocks import PROMPT_KINDS, Kind
from ...counting.estimators import KDCUBE_ESTIMATOR, SizeUnit
from ...item import Item
from ...messages import find_message_start
from ...window import Window

_NEARBY_BLOCKS = 64
"""More blocks than most turns have; the search for a turn's beginning starts within them."""


@dataclass(frozen=True, slots=True)
class TimelineCuts:
    """Where a cut may be, by the settings of a rolling timeline."""

    any_author: bool = False
    """Whether every block with an author except system and tools is a message; else only those of
    users and assistants, or any block except a result if none follows."""
    whole_messages: bool = True
    from_prompt: bool = False
    """Whether a split turn begins at the prompt before the cut; otherwise at its first block."""

    def find_first_cut(self, items: Sequence[Item], start: int | None) -> int | None:
        """Return the index of the first block from `start` on where a cut may be.

        If none follows, or `start` is None, return the first in the whole timeline. A block outside
        messages goes with the message after it.
        """
        found = None if start is None else self._find_next_cut(items, start)
        found = self._find_next_cut(items, 0) if found is None else found
        if found is None:
            return None
        if self.whole_messages:
            found = find_message_start(items, found)
        while found > 0 and not self.is_message(items[found - 1]):
            found -= 1
        return found

    def _find_next_cut(self, items: Sequence[Item], start: int) -> int | None:
        for at in range(start, len(items)):
            if self._is_boundary(items[at]):
                return at
        others = range(start, len(items)) if not self.any_author else ()
        return next((at for at in others if items[at].block.kind is not _RESULT), None)

    def is_message(self, item: Item) -> bool:
        return item.block.kind is _RESULT or self._is_boundary(item)

    def _is_boundary(self, item: Item) -> bool:
        """Check whether a cut may be at the block: it begins a turn or is a message."""
        block = item.block
        if block.origin is None:
            return block.kind in _MESSAGES
        kind = kdcube_timeline.find_type(block)
        if kind in {kdcube_timeline.RESULT_TYPE, kdcube_timeline.SUMMARY_TYPE}:
            return False
        if kind in _MESSAGE_TYPES:
            return True
        author = kdcube_timeline.find_author(block)
        if not self.any_author:
            return author in {"user", "assistant"}
        return author not in {"", "system", "tool"}

    def find_newest_turns(self, items: Sequence[Item], count: int) -> int:
        """Return the index where the newest `count` turns begin; 0 if there are fewer."""
        end, turns = len(items), 0
        while end > 0:
            turn = items[end - 1].turn
            turns += turn > 0
            if turns == count:
                start = self.find_turn_start(items, end, turn)
                return end - 1 if start is None else start
            # As in `_find_turn_beginning`, repeated here because a plan spends its time in this
            # loop.
            near = end - _NEARBY_BLOCKS
            lowest = near if near > 0 and items[near].turn != turn else 0
            end = bisect_left(items, turn, lowest, end, key=_TURN)
        return 0

    def find_turn_start(
        self, items: Sequence[Item], at: int, turn: int | None = None
    ) -> int | None:
        """Return the index where the turn of the item at `at` began.

        None if the item is the first of its turn, or if the turn has no beginning here. With
        `turn`, find that turn's beginning before `at`.
        """
        if turn is None:
            turn = items[at].turn
            if turn == 0 or self._is_turn_start(items, at):
                return None
        if not self.from_prompt:
            return _find_turn_beginning(items, turn, at)
        for index in range(at - 1, -1, -1):
            if items[index].turn != turn:
                return None
            if kdcube_timeline.is_turn_start(items[index].block):
                return index
        return None

    def _is_turn_start(self, items: Sequence[Item], at: int) -> bool:
        if kdcube_timeline.is_turn_start(items[at].block):
            return True
        return not self.from_prompt and (at == 0 or items[at - 1].turn != items[at].turn)


def _find_turn_beginning(items: Sequence[Item], turn: int, end: int) -> int:
    near = max(0, end - _NEARBY_BLOCKS)
    if near and items[near].turn == turn:
        near = 0
    return bisect_left(items, turn, near, end, key=_TURN)


_RESULT = Kind.TOOL_RESULT
_TURN = attrgetter("turn")
_MESSAGES = PROMPT_KINDS | {Kind.ASSISTANT, Kind.TOOL_CALL}
_MESSAGE_TYPES = {
    kdcube_timeline.PROMPT_TYPE,
    kdcube_timeline.COMPLETION_TYPE,
    kdcube_timeline.CALL_TYPE,
    kdcube_timeline.HEADER_TYPE,
}


@dataclass(frozen=True, slots=True)
class TimelineSizes:
    """Counts tokens by the store's count, or by the length of texts in a unit."""

    unit: str
    counts_evicted: bool = False
    """Whether blocks that left the view but are still available count as in use."""

    def count_total(self, window: Window, running: Sequence[int] | None = None) -> int:
        """Return the tokens in use; `running` are the prefix sums of the blocks that may leave."""
        if self.unit == _RECKONED:
            total = window.used_tokens
        else:
            running = self.sum_running(window) if running is None else running
            # Items before the kept window were carried along: pins and open calls.
            carried = window.items if window.boundary else ()
            carried = [item for item in carried if item.place < window.cut_start]
            standing = self.count_text_tokens(window.summary.text) if window.summary else 0
            held = sum(self.iter_sizes(carried))
            total = self.count_overhead(window) + standing + running[-1] + held
        return total + sum(self.iter_sizes(window.evicted)) if self.counts_evicted else total

    def count_overhead(self, window: Window) -> int:
        """Return the tokens in use apart from the blocks and their summary."""
        if self.unit == _RECKONED:
            used, blocks = window.used_tokens, window.running[-1]
            return used - blocks if used > blocks else 0
        return max(1, self.count_text_tokens(window.system_prompt))

    def sum_running(self, window: Window) -> Sequence[int]:
        """Return prefix sums of the items that may leave."""
        if self.unit == _RECKONED:
            return window.running
        sizes = self.iter_sizes(window.open_to_cut, kdcube_timeline.map_replaced_texts(window))
        return tuple(accumulate(sizes, initial=0))

    def count_text_tokens(self, text: str) -> int:
        """Return the tokens of a text; 0 for a blank one."""
        return _ESTIMATORS[self.unit].count_text(text)

    def iter_sizes(
        self, items: Iterable[Item], replaced: Mapping[int, str] = MappingProxyType({})
    ) -> Iterator[int]:
        """Return the tokens of each block, or of the text that replaces it."""
        if self.unit == _RECKONED:
            return (item.tokens for item in items)
        count, render = _ESTIMATORS[self.unit].count_text, kdcube_timeline.render_shown_text
        return (count(replaced.get(item.position) or render(item.block)) for item in items)


_RECKONED = SizeUnit.RECKONED.value
_ESTIMATORS = {unit.value: replace(KDCUBE_ESTIMATOR, unit=unit) for unit in SizeUnit}

"""Where a timeline may be cut: at turns and messages; and where its turns begin."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from ... import kdcube_timeline
from ...blocks import PROMPT_KINDS, Kind
from ...item import Item
from ...messages import find_message_start

_NEARBY_BLOCKS = 64
"""Blocks that most turns have fewer of: a turn's beginning is looked for here first."""


@dataclass(frozen=True, slots=True)
class TimelineCuts:
    """What a cut may stand at, by the settings of a rolling timeline."""

    any_author: bool = False
    """Whether whatever has an author is a message, but for the system and tools; else only what a
    user or an assistant wrote is, and where none follows any block but a result will do."""
    whole_messages: bool = True
    from_prompt: bool = False
    """Whether a split turn begins at the prompt before the cut; else at its first block."""

    def find_first_cut(self, items: Sequence[Item], start: int | None) -> int | None:
        """Index of the first block at or behind an index that a cut may stand at.

        The first of all where none follows, or where there is no index. What belongs to no
        message goes with the one behind it.
        """
        found = self._find_next_cut(items, start) if start is not None else None
        if found is None:
            found = self._find_next_cut(items, 0)
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
        if not self.any_author:
            for at in range(start, len(items)):
                if items[at].block.kind is not Kind.TOOL_RESULT:
                    return at
        return None

    def is_message(self, item: Item) -> bool:
        return item.block.kind is _RESULT or self._is_boundary(item)

    def _is_boundary(self, item: Item) -> bool:
        """Whether a cut may stand at the block: it begins a turn or is a message."""
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
        """Index where the newest turns begin, as many as are to stay; 0 where there are fewer."""
        end, turns = len(items), 0
        while end > 0:
            turn = items[end - 1].turn
            turns += turn > 0
            if turns == count:
                start = self.find_turn_start(items, end, turn)
                return end - 1 if start is None else start
            # As in _begins; this is the loop that a plan's time goes into.
            near = end - _NEARBY_BLOCKS
            lowest = near if near > 0 and items[near].turn != turn else 0
            end = bisect_left(items, turn, lowest, end, key=_TURN)
        return 0

    def find_turn_start(
        self, items: Sequence[Item], at: int, turn: int | None = None
    ) -> int | None:
        """Index where the turn began in which the item at an index stands.

        None where it is the first of its turn, or where the turn has no beginning here. With
        `turn`, that turn's beginning before the index.
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
    """Index where the turn begins of which some stands before `end`."""
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

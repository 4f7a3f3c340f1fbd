"""What stays in every view without anybody pinning it: the goal, and standing instructions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from .block_groups import group_blocks
from .blocks import PROMPT_KINDS, Kind
from .item import Item


@dataclass(frozen=True, slots=True)
class PinRules:
    """Which blocks count as pinned, by what they are.

    So no summary has to carry them, and none can be talked into dropping them.
    """

    first_prompt: bool = True
    """What the user asked for first."""
    kinds: frozenset[Kind] = frozenset({Kind.DEVELOPER})
    """Kinds of blocks that are standing instructions."""
    most: float = 0.05
    """The part of the model's context that one such block may take; a larger one is no rule."""
    most_together: float = 0.15
    """The part of it that all pinned blocks may take before a rule adds no more, oldest first."""

    def apply(self, items: Sequence[Item], limit: int) -> Sequence[Item]:
        """The items, those that a rule holds for marked as pinned; the same where none is new."""
        room = self.most * limit if limit > 0 else inf
        prompt = _find_first_prompt(items) if self.first_prompt else frozenset()
        groups = group_blocks(items)
        left = self.most_together * limit if limit > 0 else inf
        left -= sum(_sum_tokens(group) for group in groups if any(item.is_pinned for item in group))
        new = set[int]()
        # The first prompt before instructions, whichever is older.
        for group in sorted(groups, key=lambda group: group[0].position not in prompt):
            meant = [
                item
                for item in group
                if self._is_pinned_by_rule(item, prompt) and item.tokens <= room
            ]
            # A pin keeps all that its block is bound to.
            cost = 0 if any(item.is_pinned for item in group) else _sum_tokens(group)
            if meant and cost <= left:
                new.update(item.position for item in meant)
                left -= cost
        if not new:
            return items
        return tuple(
            [replace(item, is_pinned=True) if item.position in new else item for item in items]
        )

    def _is_pinned_by_rule(self, item: Item, prompt: frozenset[int]) -> bool:
        is_meant = item.block.kind in self.kinds or item.position in prompt
        return is_meant and not item.is_pinned


def _sum_tokens(group: Sequence[Item]) -> int:
    return sum(item.tokens for item in group)


def _find_first_prompt(items: Sequence[Item]) -> frozenset[int]:
    """The positions of what was asked for first, all pieces of that message; none if it left."""
    first = next((item for item in items if item.turn == 1 and item.kind in PROMPT_KINDS), None)
    if first is None:
        return frozenset()
    message = first.block.message_id
    if not message:
        return frozenset({first.position})
    return frozenset(item.position for item in items if item.block.message_id == message)


NO_PINS = PinRules(first_prompt=False, kinds=frozenset())
"""Only what somebody pinned."""

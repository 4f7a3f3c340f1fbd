"""Finds the blocks that stay in every view without a pin: the goal and standing instructions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from .blocks import PROMPT_KINDS, Kind
from .item import Item, group_blocks


@dataclass(frozen=True, slots=True)
class PinRules:
    """Which blocks count as pinned because of their kind.

    No summary has to carry them, and no summarizer can drop them.
    """

    first_prompt: bool = True
    """The user's first request."""
    kinds: frozenset[Kind] = frozenset({Kind.DEVELOPER})
    """Kinds of blocks that are standing instructions."""
    most: float = 0.05
    """The share of the model's context that one such block may take; a larger one is not pinned."""
    most_together: float = 0.15
    """The share that all pinned blocks may take before the rules add no more, oldest first."""

    def apply(self, items: Sequence[Item], limit: int) -> Sequence[Item]:
        """Return the items with those that a rule covers marked as pinned; unchanged if none is."""
        room = self.most * limit if limit > 0 else inf
        prompt = _find_first_prompt(items) if self.first_prompt else frozenset()
        groups = group_blocks(items)
        left = self.most_together * limit if limit > 0 else inf
        left -= sum(_sum_tokens(group) for group in groups if any(item.is_pinned for item in group))
        new = set[int]()
        # The first prompt comes before instructions, whichever is older.
        for group in sorted(groups, key=lambda group: group[0].position not in prompt):
            meant = [
                item
                for item in group
                if self._is_pinned_by_rule(item, prompt) and item.tokens <= room
            ]
            # A pin keeps the whole group of its block.
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
    """Return the positions of all pieces of the first request; empty if it left the view."""
    first = next((item for item in items if item.turn == 1 and item.kind in PROMPT_KINDS), None)
    if first is None:
        return frozenset()
    message = first.block.message_id
    if not message:
        return frozenset({first.position})
    return frozenset(item.position for item in items if item.block.message_id == message)


NO_PINS = PinRules(first_prompt=False, kinds=frozenset())
"""Only explicit pins."""

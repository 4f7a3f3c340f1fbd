"""What stays in every view without anybody pinning it: the goal, and standing instructions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .blocks import PROMPTS, Kind
from .window import Item


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

    def applied(self, items: Sequence[Item], limit: int) -> tuple[Item, ...]:
        """The items, those that a rule holds for marked as pinned."""
        room = self.most * limit if limit > 0 else float("inf")
        return tuple(
            replace(item, is_pinned=True)
            if not item.is_pinned and item.tokens <= room and self._holds_for(item)
            else item
            for item in items
        )

    def _holds_for(self, item: Item) -> bool:
        if item.kind in self.kinds:
            return True
        return self.first_prompt and item.turn == 1 and item.kind in PROMPTS


NO_PINS = PinRules(first_prompt=False, kinds=frozenset())
"""Only what somebody pinned."""

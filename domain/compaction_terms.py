"""Defines the terms on which a session is compacted, and the blocks that stay without a pin."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from .blocks import PROMPT_KINDS, BlockKind
from .compaction_events import Trigger
from .context_limit import DEFAULT_LIMIT, LimitSource
from .item import WindowItem, group_blocks
from .models import ModelFacts
from .policies.policy import Policy

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PinRules:
    """Which blocks count as pinned because of their kind.

    No summary has to carry them, and no summarizer can drop them. Of an instruction that was given
    again, such as a reminder or a file's contents, the newest counts.
    """

    first_prompt: bool = True
    """The user's first request."""
    kinds: frozenset[BlockKind] = frozenset({BlockKind.DEVELOPER})
    """Kinds of blocks that are standing instructions."""
    most: float = 0.05
    """The share of the model's context that one such block may take; a larger one is not pinned."""
    most_together: float = 0.15
    """The share that all pinned blocks may take before the rules add no more, oldest first."""

    def apply(self, items: Sequence[WindowItem], limit: int) -> Sequence[WindowItem]:
        """Return the items with those that a rule covers marked as pinned; unchanged if none is."""
        room = self.most * limit if limit > 0 else inf
        prompt = _find_first_prompt(items) if self.first_prompt else frozenset()
        outdated = _find_outdated(item for item in items if item.block.kind in self.kinds)
        groups = group_blocks(items)
        left = self.most_together * limit if limit > 0 else inf
        left -= sum(_sum_tokens(group) for group in groups if any(item.is_pinned for item in group))
        new = set[int]()
        # The first prompt comes before instructions, whichever is older.
        for group in sorted(groups, key=lambda group: group[0].position not in prompt):
            meant = [
                item
                for item in group
                if self._is_pinned_by_rule(item, prompt)
                and item.tokens <= room
                and item.position not in outdated
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

    def _is_pinned_by_rule(self, item: WindowItem, prompt: frozenset[int]) -> bool:
        is_meant = item.block.kind in self.kinds or item.position in prompt
        return is_meant and not item.is_pinned


def _sum_tokens(group: Sequence[WindowItem]) -> int:
    return sum(item.tokens for item in group)


def _find_outdated(instructions: Iterable[WindowItem]) -> frozenset[int]:
    """Return the positions of the instructions that a later one repeats or replaces."""
    newest, outdated = dict[Hashable, int](), set[int]()
    for item in instructions:
        text, name = item.block.text, getattr(item.block, "name", None)
        # A named one says in its first line what it is about; numbers there are counts and dates.
        about = (name, _DIGITS.sub("", text.partition("\n")[0])) if name else text
        if about in newest:
            outdated.add(newest[about])
        newest[about] = item.position
    return frozenset(outdated)


def _find_first_prompt(items: Sequence[WindowItem]) -> frozenset[int]:
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


REGROWTH_SHARE = 0.05
"""How much a session must grow, as a share of the limit, before a failed compaction by threshold is
tried again."""
EXPECTED_CALLS = 20
"""Later calls over which a compaction has to pay for itself, unless something else is known."""


@dataclass(frozen=True)
class CompactionTerms:
    """The policy, the model, and what a compaction has to gain."""

    policy: Policy
    limit: int = DEFAULT_LIMIT
    """Tokens of the model's context."""
    trigger: Trigger = Trigger.MANUAL
    instructions: str | None = None
    """What the summary should pay attention to."""
    tracked_files: Callable[[], Iterable[str]] | None = None
    """Returns the files that the agent's program knows to have been read."""
    pins: PinRules = NO_PINS
    minimum_gain: float = 0.0
    """The share of the view that has to leave for anything to be recorded."""
    prices: ModelFacts | None = None
    """The prices of the agent's model, if the caller asks for prices."""
    expected_calls: int = EXPECTED_CALLS
    """Later calls over which a compaction has to pay for itself."""
    require_saving: bool = False
    """Whether an automatic compaction has to pay for itself."""
    limit_source: LimitSource = LimitSource.ARGUMENT

    @property
    def is_automatic(self) -> bool:
        """Whether no user waits for it; a small gain is not worth a broken cache then."""
        return self.trigger.is_automatic

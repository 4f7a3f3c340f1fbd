"""Writes a summary of blocks: of the history, and apart from it of the beginning of a turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.sections import Section
from ....domain.token_budget import estimate_text
from . import prompts
from .chunks import Count
from .conversation_text import groups_of
from .hierarchy import Ask, Reader, Work, together

LEAST_SHARE, MOST_SHARE = 0.2, 0.5
"""What part of the room the beginning of a turn has, whatever its part of the conversation."""
SLACK = 1.25
"""How much longer than it was asked to be an answer may get before it is broken off."""


@dataclass(frozen=True)
class Writer:
    """Somebody to ask, how many tokens they can hold, and what they are to mind."""

    ask: Ask
    holds: int
    count: Count
    instructions: str | None = None
    facts: tuple[str, ...] = ()

    async def summary(
        self, items: Sequence[Item], prefix: Ranges, previous: str | None, budget: int
    ) -> str:
        """A text for the blocks and the summary before them.

        Where a turn was split at its `prefix`, what stands for that part comes last.
        """
        beginning = [item for item in items if item.position in prefix]
        history = [item for item in items if item.position not in prefix]
        if not beginning:
            return await self._of_history(history, previous, budget)
        if not history and not previous:
            return _under_turn(await self._of_turn(beginning, budget))
        share = sum(item.tokens for item in beginning) / max(sum(item.tokens for item in items), 1)
        for_turn = int(budget * min(max(share, LEAST_SHARE), MOST_SHARE))
        past, turn = await together(
            [
                self._of_history(history, previous, budget - for_turn),
                self._of_turn(beginning, for_turn),
            ]
        )
        return f"{past}\n\n{_under_turn(turn)}"

    async def _of_history(self, items: Sequence[Item], previous: str | None, budget: int) -> str:
        if not items and previous and estimate_text(previous) <= budget:
            return previous  # nothing came since
        task = prompts.summing_up(
            prompts.words_for(budget),
            updates=bool(previous),
            instructions=self.instructions,
            facts=self.facts,
        )
        return await self._written(items, task, previous, budget)

    async def _of_turn(self, items: Sequence[Item], budget: int) -> str:
        task = prompts.turn_beginning(prompts.words_for(budget), self.instructions, self.facts)
        return await self._written(items, task, None, budget)

    async def _written(
        self, items: Sequence[Item], task: str, previous: str | None, budget: int
    ) -> str:
        most = int(budget * SLACK)
        work = Work(groups_of(items), most, task, previous, self.instructions)
        return await Reader(self.ask, self.holds - most, self.count).condensed(work)


def _under_turn(text: str) -> str:
    return f"## {Section.TURN}\n\n{text}"

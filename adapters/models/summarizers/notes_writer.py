"""Writes a summary of the history, with a separate part for a split turn's beginning."""

from collections.abc import Sequence
from dataclasses import dataclass

from ....domain.item import Item
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.sections import SummarySection
from ....domain.token_estimate import estimate_text
from . import prompts
from .chunks import CountTokens
from .conversation_text import make_passage_groups
from .hierarchical_summary import AskPrompt, HierarchicalReader, SummaryTask, gather_all

MIN_TURN_SHARE, MAX_TURN_SHARE = 0.2, 0.5
"""The limits for the share of a split turn's beginning in the room."""
SLACK = 1.25
"""How much longer than requested an answer may get before it is truncated."""


@dataclass(frozen=True)
class NotesWriter:
    """A model to ask, how many tokens its window holds, and what it should consider."""

    ask: AskPrompt
    max_tokens: int
    count: CountTokens
    instructions: str | None = None
    facts: tuple[str, ...] = ()

    async def write(
        self, items: Sequence[Item], prefix: Ranges, previous: str | None, budget: int
    ) -> str:
        """Return a text for the blocks and the summary before them.

        If a turn was split at its `prefix`, that part's summary comes last.
        """
        beginning = [item for item in items if item.position in prefix]
        history = [item for item in items if item.position not in prefix]
        if not beginning:
            return await self._write_history(history, previous, budget)
        if not history and not previous:
            return _nest_headings(await self._write_turn(beginning, budget))
        share = sum(item.tokens for item in beginning) / max(sum(item.tokens for item in items), 1)
        for_turn = int(budget * min(max(share, MIN_TURN_SHARE), MAX_TURN_SHARE))
        past, turn = await gather_all(
            [
                self._write_history(history, previous, budget - for_turn),
                self._write_turn(beginning, for_turn),
            ]
        )
        return f"{past}\n\n{_nest_headings(turn)}"

    async def _write_history(self, items: Sequence[Item], previous: str | None, budget: int) -> str:
        if not items and previous and estimate_text(previous) <= budget:
            return previous  # no new blocks
        task = prompts.make_summary_task(
            prompts.convert_to_words(budget),
            updates=bool(previous),
            instructions=self.instructions,
            facts=self.facts,
        )
        return await self._write_part(items, task, previous, budget)

    async def _write_turn(self, items: Sequence[Item], budget: int) -> str:
        task = prompts.make_turn_task(
            prompts.convert_to_words(budget), self.instructions, self.facts
        )
        return await self._write_part(items, task, None, budget)

    async def _write_part(
        self, items: Sequence[Item], task: str, previous: str | None, budget: int
    ) -> str:
        most = int(budget * SLACK)
        work = SummaryTask(make_passage_groups(items), most, task, previous, self.instructions)
        return await HierarchicalReader(self.ask, self.max_tokens - most, self.count).condense(work)


def _nest_headings(text: str) -> str:
    return f"## {SummarySection.TURN}\n\n{text}"

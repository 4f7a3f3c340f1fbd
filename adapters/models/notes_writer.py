"""Writes a summary with a model's answers; of a long history, from notes on its chunks."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ...domain.errors import SummarizerFailedError
from ...domain.item import WindowItem
from ...domain.ranges import Ranges
from ...domain.summaries.clean_text import make_printable
from ...domain.summaries.layout import SummarySection
from ...domain.summaries.summarizer import (
    ALWAYS_SMALL_TOKENS,
    Material,
    SummaryRequest,
    SummaryTemplate,
)
from ...domain.token_estimate import estimate_text
from ..models import prompts
from .conversation_text import (
    Passage,
    count_cautiously,
    make_chunks,
    make_passages,
    measure_passage,
)
from .reply_parsing import Checklist, strip_frame

_T = TypeVar("_T")

MIN_TURN_SHARE, MAX_TURN_SHARE = 0.2, 0.5
"""The limits for the share of a split turn's beginning in the room."""
SLACK = 1.25
"""How much longer than requested an answer may get before it is truncated."""
MIN_ROOM_TOKENS = 400
"""The smallest room for a conversation that is worth a request."""
MIN_NOTES_TOKENS = 150
MAX_HALVINGS = 2
"""How often to halve the chunks if the model rejects requests as too long."""
_TASK_TOKENS = 200
"""A generous count for a prompt's explanation of its marks."""


class TooLongError(Exception):
    """A request does not fit in the model's window."""


class AskForNotes(Protocol):
    """Asks a model, for at most that many tokens of answer."""

    def __call__(
        self, prompt: str, most: int, /, system: str = prompts.NOTES_SYSTEM_PROMPT
    ) -> Awaitable[str]: ...


@dataclass(frozen=True)
class NotesWriter:
    """A model to ask, how many tokens its window holds, and what it should consider."""

    ask: AskForNotes
    max_tokens: int
    instructions: str | None = None
    checklist: Checklist = Checklist()

    async def write(
        self, items: Sequence[WindowItem], prefix: Ranges, previous: str | None, budget: int
    ) -> str:
        """Return a text for the blocks and the summary before them.

        If a turn was split at its `prefix`, that part's summary comes last. Raises TooLongError if
        the model holds too little for any request.
        """
        beginning = [item for item in items if item.position in prefix]
        history = [item for item in items if item.position not in prefix]
        before, of_turn = self.checklist.split_at(prefix)
        if not beginning:
            return await self._write_history(history, previous, budget, before)
        if not history and not previous:
            return _nest_headings(await self._write_turn(beginning, budget, of_turn))
        share = sum(item.tokens for item in beginning) / max(sum(item.tokens for item in items), 1)
        for_turn = int(budget * min(max(share, MIN_TURN_SHARE), MAX_TURN_SHARE))
        past, turn = await _gather_all(
            [
                self._write_history(history, previous, budget - for_turn, before),
                self._write_turn(beginning, for_turn, of_turn),
            ]
        )
        return f"{past}\n\n{_nest_headings(turn)}"

    async def write_by_template(self, template: SummaryTemplate, material: Material) -> str:
        """Return the whole text as the template has it: one request per part, then joined.

        Raises TooLongError if a request does not fit, since templates have no chunks.
        """
        requests = template.plan_requests(material)
        texts = [self._make_template_prompt(template, one, material) for one in requests]
        answers = await _gather_all(
            self.ask(prompt, one.budget, system=prompts.TEMPLATE_SYSTEM_PROMPT)
            for prompt, one in zip(texts, requests, strict=True)
        )
        pairs = zip(requests, answers, strict=True)
        return template.join_answers({one.part: strip_frame(text) for one, text in pairs}, material)

    def _make_template_prompt(
        self, template: SummaryTemplate, request: SummaryRequest, material: Material
    ) -> str:
        record = make_printable(template.render_conversation(request.items))
        if request.items and not record.strip():
            raise SummarizerFailedError(
                f"nothing of the {len(request.items):,} blocks is shown to the summarizer of the "
                f"{request.part} as the policy's document has it; set summary.prompt to fresh"
            )
        replaced = sum(item.tokens for item in request.items)
        replaced += estimate_text(request.previous or "")
        words = prompts.convert_to_words(min(request.budget, max(replaced, ALWAYS_SMALL_TOKENS)))
        prompt = prompts.make_template_prompt(
            template, request, record, words, material.instructions
        )
        fixed = count_cautiously(prompts.TEMPLATE_SYSTEM_PROMPT)
        if fixed + count_cautiously(prompt) + request.budget > self.max_tokens:
            raise TooLongError
        return prompt

    async def _write_history(
        self,
        items: Sequence[WindowItem],
        previous: str | None,
        budget: int,
        checklist: Checklist,
    ) -> str:
        if not items and previous and estimate_text(previous) <= budget:
            return previous  # no new blocks
        what = prompts.UPDATE_TASK if previous else prompts.SUMMARY_TASK
        return await self._condense(items, what, previous, budget, checklist)

    async def _write_turn(
        self, items: Sequence[WindowItem], budget: int, checklist: Checklist
    ) -> str:
        return await self._condense(items, prompts.TURN_TASK, None, budget, checklist)

    async def _condense(
        self,
        items: Sequence[WindowItem],
        what: str,
        previous: str | None,
        budget: int,
        checklist: Checklist,
    ) -> str:
        """Return one text for everything, halving the chunks if the model rejects a request."""
        words = prompts.convert_to_words(budget)
        task = prompts.make_task(what, words, self.instructions, checklist)
        passages, most = make_passages(items), int(budget * SLACK)
        room = self.max_tokens - most
        for _ in range(MAX_HALVINGS):
            try:
                return await self._condense_within(room, passages, task, previous, most)
            except TooLongError:
                room //= 2
        return await self._condense_within(room, passages, task, previous, most)

    async def _condense_within(
        self, room: int, passages: Sequence[Passage], task: str, previous: str | None, most: int
    ) -> str:
        """Return one text of at most `most` tokens, from notes on chunks until these fit."""
        left = room - _measure_fixed(task, previous)
        while (size := sum(map(measure_passage, passages))) > left:
            passages = await self._take_notes(room, passages, most)
            if sum(map(measure_passage, passages)) >= size:
                raise TooLongError
        return await self.ask(prompts.make_notes_prompt(passages, previous, task), most)

    async def _take_notes(
        self, room: int, passages: Sequence[Passage], most: int
    ) -> Sequence[Passage]:
        """Return notes on chunks of the passages, without the summary before them."""
        task = prompts.make_task(prompts.PART_TASK.format(number=1, count=1), 1, self.instructions)
        left = room - _measure_fixed(task, None)
        if left < MIN_ROOM_TOKENS:
            raise TooLongError
        chunks = make_chunks(passages, left)
        size = max(min(most, left // max(len(chunks), 6)), MIN_NOTES_TOKENS)
        words = prompts.convert_to_words(size)
        parts = [
            prompts.PART_TASK.format(number=n, count=len(chunks)) for n in range(1, 1 + len(chunks))
        ]
        tasks = [prompts.make_task(part, words, self.instructions) for part in parts]
        notes = await _gather_all(
            self.ask(prompts.make_notes_prompt(chunk, None, task), 2 * size)
            for chunk, task in zip(chunks, tasks, strict=True)
        )
        return [
            Passage(chunk[0].position, prompts.NOTES_HEAD, note.strip())
            for chunk, note in zip(chunks, notes, strict=True)
        ]


def _measure_fixed(task: str, previous: str | None) -> int:
    """Return the tokens of a request apart from its passages."""
    texts = (prompts.NOTES_SYSTEM_PROMPT, task, previous or "")
    return sum(map(count_cautiously, texts)) + _TASK_TOKENS


def _nest_headings(text: str) -> str:
    return f"## {SummarySection.TURN}\n\n{text}"


async def _gather_all(work: Iterable[Awaitable[_T]]) -> list[_T]:
    """Return the results in order; the first failure cancels the rest."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

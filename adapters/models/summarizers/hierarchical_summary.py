"""Summarizes conversations larger than any window: chunks in parallel, merged until one is left."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from . import prompts
from .chunks import PASSAGE_FRAME_TOKENS, CountTokens, make_chunks
from .conversation_text import PassageGroup

_T = TypeVar("_T")

MIN_ROOM_TOKENS = 400
"""The smallest room for a conversation that is worth a request."""
MIN_NOTES_TOKENS = 150
MAX_HALVINGS = 2
"""How often to halve the chunks if the model rejects requests as too long."""


class TooLongError(Exception):
    """A request does not fit in the model's window."""


class AskPrompt(Protocol):
    """Asks a model, for at most that many tokens of answer."""

    def __call__(self, prompt: str, most: int, /) -> Awaitable[str]: ...


@dataclass(frozen=True)
class SummaryTask:
    """What to summarize, and how large the result may be."""

    groups: Sequence[PassageGroup]
    budget: int
    task: str
    """The task for a record that fits in one request, or for the merged notes."""
    previous: str | None = None
    instructions: str | None = None


@dataclass(frozen=True)
class HierarchicalReader:
    """A model with that much room for a prompt, apart from its answer."""

    ask: AskPrompt
    room: int
    count: CountTokens

    async def condense(self, work: SummaryTask) -> str:
        """Return one text for everything, halving the chunks if the model rejects a request."""
        reader = self
        for _ in range(MAX_HALVINGS):
            try:
                return await reader.condense_once(work)
            except TooLongError:
                reader = replace(reader, room=reader.room // 2)
        return await reader.condense_once(work)

    async def condense_once(self, work: SummaryTask) -> str:
        """Return one text for everything. Raises TooLongError if a request is too long."""
        fixed = self._measure_fixed(work.task, work.previous)
        chunks = make_chunks(work.groups, max(self.room - fixed, 1), self.count)
        if len(chunks) <= 1 and self.room > fixed:
            return await self._condense_in_one(work, chunks[0] if chunks else ())
        # Notes on parts leave out the earlier summary, which is added when they are merged.
        room = self.room - self._measure_fixed(
            prompts.make_part_task(1, 1, 1, work.instructions), None
        )
        if room < MIN_ROOM_TOKENS:
            raise TooLongError
        chunks = make_chunks(work.groups, room, self.count)
        size = max(min(work.budget, room // max(len(chunks), 6)), MIN_NOTES_TOKENS)
        notes = await gather_all(
            self.ask(
                prompts.make_fresh_prompt(
                    chunk,
                    prompts.make_part_task(
                        number, len(chunks), prompts.convert_to_words(size), work.instructions
                    ),
                ),
                2 * size,
            )
            for number, chunk in enumerate(chunks, 1)
        )
        return await self._merge(work, notes, size)

    async def _condense_in_one(self, work: SummaryTask, passages: PassageGroup) -> str:
        prompt = (
            prompts.make_update_prompt(passages, work.previous, work.task)
            if work.previous
            else prompts.make_fresh_prompt(passages, work.task)
        )
        return await self.ask(prompt, work.budget)

    async def _merge(self, work: SummaryTask, notes: list[str], size: int) -> str:
        """Merge the notes into one text, in as many rounds as they need to fit."""
        while self._measure_notes(notes) > self.room - self._measure_fixed(
            work.task, work.previous
        ):
            task = prompts.make_merge_task(
                len(notes), prompts.convert_to_words(size), work.instructions
            )
            parts = self._gather(notes, self.room - self._measure_fixed(task, None))
            if len(parts) == len(notes):
                raise TooLongError
            notes = await gather_all(
                self.ask(prompts.make_merge_prompt(part, None, task), 2 * size)
                if len(part) > 1
                else _join_notes(part)
                for part in parts
            )
        return await self.ask(
            prompts.make_merge_prompt(notes, work.previous, work.task), work.budget
        )

    def _gather(self, notes: Sequence[str], room: int) -> list[list[str]]:
        """Return consecutive notes in parts that fit."""
        parts: list[list[str]] = []
        used = 0
        for note in notes:
            tokens = self._measure_notes([note])
            if not parts or used + tokens > room:
                parts.append([])
                used = 0
            parts[-1].append(note)
            used += tokens
        return parts

    def _measure_notes(self, notes: Sequence[str]) -> int:
        return sum(self.count(note) + PASSAGE_FRAME_TOKENS for note in notes)

    def _measure_fixed(self, task: str, previous: str | None) -> int:
        """Return the tokens of a request apart from its content."""
        return (
            self.count(prompts.NOTES_SYSTEM_PROMPT)
            + self.count(task)
            + self.count(previous or "")
            + _TASK_TOKENS
        )


_TASK_TOKENS = 200
"""A generous count for a prompt's explanation of its marks."""


async def gather_all(work: Iterable[Awaitable[_T]]) -> list[_T]:
    """Return the results in order; the first failure cancels the rest."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _join_notes(notes: Sequence[str]) -> str:
    return notes[0]

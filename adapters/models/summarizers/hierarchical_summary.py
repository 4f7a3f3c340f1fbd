"""Sums up what no window holds at once: in chunks, side by side, merged until one is left."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from . import prompts
from .chunks import PASSAGE_FRAME_TOKENS, CountTokens, make_chunks
from .conversation_text import PassageGroup

_T = TypeVar("_T")

MIN_ROOM_TOKENS = 400
"""Tokens of a conversation below which a window is too small to work with."""
MIN_NOTES_TOKENS = 150
MAX_HALVINGS = 2
"""How often chunks are made smaller because the model says that a request was too long."""


class TooLongError(Exception):
    """A request does not fit in the model's window."""


class AskPrompt(Protocol):
    """Puts a prompt to a model, and awaits at most so many tokens of answer."""

    def __call__(self, prompt: str, most: int, /) -> Awaitable[str]: ...


@dataclass(frozen=True)
class SummaryTask:
    """What is to be summed up, and how large the result may be."""

    groups: Sequence[PassageGroup]
    budget: int
    task: str
    """What to do with a record that fits in one request, or with the notes on all its parts."""
    previous: str | None = None
    instructions: str | None = None


@dataclass(frozen=True)
class HierarchicalReader:
    """A model with so much room for a prompt, its answer left out."""

    ask: AskPrompt
    room: int
    count: CountTokens

    async def condense(self, work: SummaryTask) -> str:
        """One text for all of it; where the model finds a request too long, in smaller chunks."""
        reader = self
        for _ in range(MAX_HALVINGS):
            try:
                return await reader.condense_once(work)
            except TooLongError:
                reader = replace(reader, room=reader.room // 2)
        return await reader.condense_once(work)

    async def condense_once(self, work: SummaryTask) -> str:
        """One text for all of it; raises TooLongError where a request of this size is too long."""
        fixed = self._measure_fixed(work.task, work.previous)
        chunks = make_chunks(work.groups, max(self.room - fixed, 1), self.count)
        if len(chunks) <= 1 and self.room > fixed:
            return await self._condense_in_one(work, chunks[0] if chunks else ())
        # Notes on parts are taken without the earlier summary: it comes in when they are merged.
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
        """The notes as one, by way of as many rounds as it takes until they fit in one request."""
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
        """Consecutive notes, as many together as fit."""
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
        """Tokens of a request besides what it is about."""
        return (
            self.count(prompts.NOTES_SYSTEM_PROMPT)
            + self.count(task)
            + self.count(previous or "")
            + _TASK_TOKENS
        )


_TASK_TOKENS = 200
"""Tokens, amply, of what a prompt says about its marks."""


async def gather_all(work: Iterable[Awaitable[_T]]) -> list[_T]:
    """The results in order; the first failure ends all, and leaves nothing running."""
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

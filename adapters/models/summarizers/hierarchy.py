"""Sums up what no window holds at once: in chunks, side by side, merged until one is left."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from . import prompts
from .chunks import FRAME, Count, chunked
from .conversation_text import Group

T = TypeVar("T")

LEAST_ROOM = 400
"""Tokens of a conversation below which a window is too small to work with."""
LEAST_NOTES = 150
HALVINGS = 2
"""How often chunks are made smaller because the model says that a request was too long."""


class TooLongError(Exception):
    """A request does not fit in the model's window."""


class Ask(Protocol):
    """Puts a prompt to a model, and awaits at most so many tokens of answer."""

    def __call__(self, prompt: str, most: int, /) -> Awaitable[str]: ...


@dataclass(frozen=True)
class Work:
    """What is to be summed up, and how large the result may be."""

    groups: Sequence[Group]
    budget: int
    task: str
    """What to do with a record that fits in one request, or with the notes on all its parts."""
    previous: str | None = None
    instructions: str | None = None


@dataclass(frozen=True)
class Reader:
    """A model with so much room for a prompt, its answer left out."""

    ask: Ask
    room: int
    count: Count

    async def condensed(self, work: Work) -> str:
        """One text for all of it; where the model finds a request too long, in smaller chunks."""
        reader = self
        for _ in range(HALVINGS):
            try:
                return await reader.condensed_once(work)
            except TooLongError:
                reader = replace(reader, room=reader.room // 2)
        return await reader.condensed_once(work)

    async def condensed_once(self, work: Work) -> str:
        """One text for all of it; raises TooLongError where a request of this size is too long."""
        fixed = self._fixed(work.task, work.previous)
        chunks = chunked(work.groups, max(self.room - fixed, 1), self.count)
        if len(chunks) <= 1 and self.room > fixed:
            return await self._at_once(work, chunks[0] if chunks else ())
        # Notes on parts are taken without the earlier summary: it comes in when they are merged.
        room = self.room - self._fixed(prompts.part_notes(1, 1, 1, work.instructions), None)
        if room < LEAST_ROOM:
            raise TooLongError
        chunks = chunked(work.groups, room, self.count)
        size = max(min(work.budget, room // max(len(chunks), 6)), LEAST_NOTES)
        notes = await together(
            self.ask(
                prompts.fresh(
                    chunk,
                    prompts.part_notes(
                        number, len(chunks), prompts.words_for(size), work.instructions
                    ),
                ),
                2 * size,
            )
            for number, chunk in enumerate(chunks, 1)
        )
        return await self._merged(work, notes, size)

    async def _at_once(self, work: Work, passages: Group) -> str:
        prompt = (
            prompts.update(passages, work.previous, work.task)
            if work.previous
            else prompts.fresh(passages, work.task)
        )
        return await self.ask(prompt, work.budget)

    async def _merged(self, work: Work, notes: list[str], size: int) -> str:
        """The notes as one, by way of as many rounds as it takes until they fit in one request."""
        while self._sizes(notes) > self.room - self._fixed(work.task, work.previous):
            task = prompts.merging(len(notes), prompts.words_for(size), work.instructions)
            parts = self._gathered(notes, self.room - self._fixed(task, None))
            if len(parts) == len(notes):
                raise TooLongError
            notes = await together(
                self.ask(prompts.merge(part, None, task), 2 * size)
                if len(part) > 1
                else _as_is(part)
                for part in parts
            )
        return await self.ask(prompts.merge(notes, work.previous, work.task), work.budget)

    def _gathered(self, notes: Sequence[str], room: int) -> list[list[str]]:
        """Consecutive notes, as many together as fit."""
        parts: list[list[str]] = []
        used = 0
        for note in notes:
            tokens = self._sizes([note])
            if not parts or used + tokens > room:
                parts.append([])
                used = 0
            parts[-1].append(note)
            used += tokens
        return parts

    def _sizes(self, notes: Sequence[str]) -> int:
        return sum(self.count(note) + FRAME for note in notes)

    def _fixed(self, task: str, previous: str | None) -> int:
        """Tokens of a request besides what it is about."""
        return self.count(prompts.SYSTEM) + self.count(task) + self.count(previous or "") + _TOLD


_TOLD = 200
"""Tokens, amply, of what a prompt says about its marks."""


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results in order; the first failure ends all, and leaves nothing running."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _as_is(notes: Sequence[str]) -> str:
    return notes[0]

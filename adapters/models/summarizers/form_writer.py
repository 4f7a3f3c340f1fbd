"""Writes a summary as the policy's document has it asked for: a request a part, and then joined."""

from dataclasses import dataclass
from typing import Protocol

from ....domain.errors import SummariserFailedError
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.wording import printable
from ....domain.summaries.gate import ALWAYS_SMALL
from ....domain.summaries.summariser import Asked, Material, SummaryForm
from ....domain.token_budget import estimate_text
from . import form_prompts, prompts
from .chunks import Count
from .cited_lines import without_frame, written
from .hierarchy import TooLongError, together


class Told(Protocol):
    """Puts a prompt to a model that is told its part, and awaits at most so many tokens."""

    async def __call__(self, prompt: str, most: int, /, system: str) -> str: ...


@dataclass(frozen=True)
class FormWriter:
    """Somebody to ask, and how many tokens they can hold."""

    ask: Told
    holds: int
    count: Count

    async def summary(self, form: SummaryForm, material: Material) -> str:
        """The whole text.

        Raises TooLongError where a request does not fit: a form knows of no chunks.
        """
        asked = form.asked(material)
        requests = [(self._request(form, one, material), one.budget) for one in asked]
        answers = await together(
            self.ask(prompt, most, system=form_prompts.SYSTEM) for prompt, most in requests
        )
        texts = {
            one.part: without_frame(answer) for one, answer in zip(asked, answers, strict=True)
        }
        return form.joined(texts, material)

    def _request(self, form: SummaryForm, one: Asked, material: Material) -> str:
        record = printable(form.said(one.items))
        if one.items and not record.strip():
            raise SummariserFailedError(
                f"nothing of the {len(one.items):,} blocks is shown to whoever sums up the "
                f"{one.part} as the policy's document has it; set summary.prompt to fresh"
            )
        replaced = sum(item.tokens for item in one.items) + estimate_text(one.previous or "")
        words = prompts.words_for(min(one.budget, max(replaced, ALWAYS_SMALL)))
        prompt = form_prompts.request(form, one, record, words, material.instructions)
        if self.count(form_prompts.SYSTEM) + self.count(prompt) + one.budget > self.holds:
            raise TooLongError
        return prompt


def cited(text: str, covers: Ranges) -> Ranges:
    """The handles that a joined text names: an earlier summary may have had some."""
    return written(text, covers).cites

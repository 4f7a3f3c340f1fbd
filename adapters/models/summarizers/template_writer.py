"""Writes a summary by a policy's template: one request per part, then joined."""

from dataclasses import dataclass
from typing import Protocol

from ....domain.errors import SummarizerFailedError
from ....domain.ranges import Ranges
from ....domain.summaries.extraction.clean_text import make_printable
from ....domain.summaries.gate import ALWAYS_SMALL_TOKENS
from ....domain.summaries.summarizer import Material, SummaryRequest, SummaryTemplate
from ....domain.token_estimate import estimate_text
from . import prompts, template_prompts
from .chunks import CountTokens
from .hierarchical_summary import TooLongError, gather_all
from .reply_parsing import parse_reply, strip_frame


class AskAsSystem(Protocol):
    """Asks a model with a system prompt, for at most that many tokens."""

    async def __call__(self, prompt: str, most: int, /, system: str) -> str: ...


@dataclass(frozen=True)
class TemplateWriter:
    """A model to ask, and how many tokens its window holds."""

    ask: AskAsSystem
    max_tokens: int
    count: CountTokens

    async def write(self, form: SummaryTemplate, material: Material) -> str:
        """Return the whole text.

        Raises TooLongError if a request does not fit, since templates have no chunks.
        """
        asked = form.plan_requests(material)
        requests = [(self._make_request(form, one, material), one.budget) for one in asked]
        answers = await gather_all(
            self.ask(prompt, most, system=template_prompts.TEMPLATE_SYSTEM_PROMPT)
            for prompt, most in requests
        )
        texts = {one.part: strip_frame(answer) for one, answer in zip(asked, answers, strict=True)}
        return form.join_answers(texts, material)

    def _make_request(self, form: SummaryTemplate, one: SummaryRequest, material: Material) -> str:
        record = make_printable(form.render_conversation(one.items))
        if one.items and not record.strip():
            raise SummarizerFailedError(
                f"nothing of the {len(one.items):,} blocks is shown to the summarizer of the "
                f"{one.part} as the policy's document has it; set summary.prompt to fresh"
            )
        replaced = sum(item.tokens for item in one.items) + estimate_text(one.previous or "")
        words = prompts.convert_to_words(min(one.budget, max(replaced, ALWAYS_SMALL_TOKENS)))
        prompt = template_prompts.make_part_prompt(form, one, record, words, material.instructions)
        if (
            self.count(template_prompts.TEMPLATE_SYSTEM_PROMPT) + self.count(prompt) + one.budget
            > self.max_tokens
        ):
            raise TooLongError
        return prompt


def find_cited(text: str, covers: Ranges) -> Ranges:
    """Return the handles in a joined text, including those of an earlier summary."""
    return parse_reply(text, covers).cites

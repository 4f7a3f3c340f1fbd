"""Lets a model write the summary, through pydantic-ai, in as many requests as needed."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...domain.blocks import BlockKind
from ...domain.errors import InvalidSettingError, SummarizerFailedError
from ...domain.summaries.layout import write_file_lists
from ...domain.summaries.summarizer import Draft, Material
from ...domain.token_estimate import CHARS_PER_TOKEN, estimate_text
from ..models import prompts
from .conversation_text import count_cautiously, read_source
from .notes_writer import SLACK, NotesWriter, TooLongError
from .reply_parsing import (
    CHECKLIST_SHARE,
    Checklist,
    correct_quotes,
    make_checklist,
    parse_reply,
    split_sections,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from .model_calls import ModelCalls, PriceCall

DEFAULT_WINDOW_TOKENS = 32_000
"""The assumed window of a model if none is known."""
_FILES_SHARE = 0.18
"""The share of the budget for lists of files."""


@dataclass(frozen=True)
class LlmSummarizer:
    """A model's own summary, with the handles of its sources."""

    model: "Model | str"
    """A name (`anthropic:claude-haiku-4-5`), or a pydantic-ai model used only here."""
    base_url: str | None = None
    """The provider's address, if not the usual one."""
    key_from: str | None = None
    """The environment variable of the key, if not the provider's usual one."""
    from_originals: bool = False
    """Summarize the originals of what the text replaces, instead of the earlier summary."""
    from_served_prefix: bool = False
    """Ask at the end of the served request; only if `model` is the agent's own."""
    by_form: bool = False
    """Ask with the policy's own template."""
    window: int | None = None
    """The tokens that the model's window holds; by default, what is known of it."""
    at_once: int = 4
    """The most concurrent requests."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further model settings, as pydantic-ai names them."""
    priced: "PriceCall | None" = None
    """Returns a call's cost; by default, from list prices."""
    name: str = "llm"

    def __post_init__(self) -> None:
        if find_spec("pydantic_ai") is None:
            raise InvalidSettingError("llm needs pydantic-ai; run: pip install 'cutbank[llm]'")
        if self.window is not None and self.window < 1:
            raise InvalidSettingError(
                f"llm: window cannot be {self.window!r}; it takes tokens, 1 or more"
            )
        if self.at_once < 1:
            raise InvalidSettingError(
                f"llm: at_once cannot be {self.at_once!r}; it takes 1 or more"
            )
        if self.by_form and (self.from_originals or self.from_served_prefix):
            other = "from_originals" if self.from_originals else "from_served_prefix"
            raise InvalidSettingError(
                f"llm: by_form asks as the policy's document does, which does not have {other}; "
                "leave one of them out"
            )

    async def summarize(self, material: Material) -> Draft:
        """Return a draft within the budget, with its usage and cost.

        Raises SummarizerFailedError. Truncated or rule-breaking drafts are left to the gate.
        """
        from .model_access import describe_key_variables, open_model  # noqa: PLC0415 - loads pydantic-ai
        from .model_calls import ModelCalls  # noqa: PLC0415 - start-up time

        async with open_model(self.model, self.base_url, self.key_from) as model:
            name = self.model if isinstance(self.model, str) else model.model_id
            calls = ModelCalls(
                model=model,
                name=name,
                keys=describe_key_variables(name, self.key_from),
                at_once=asyncio.Semaphore(self.at_once),
                settings=self.settings,
                priced=self.priced,
            )
            draft = await self._write_by_template(material, calls)
            draft = draft or await self._write_from_record(material, calls)
            return replace(draft, **calls.sum_spent())

    async def _write_by_template(self, material: Material, calls: "ModelCalls") -> Draft | None:
        """Return the draft by the policy's template; None without one, or for too much material."""
        if not self.by_form or material.template is None:
            return None
        try:
            writer = NotesWriter(calls.ask, self._find_capacity(calls))
            text = await writer.write_by_template(material.template, material)
        except TooLongError:
            return None
        return Draft(text, split_sections(text), parse_reply(text, material.covers).cites)

    async def _write_from_record(self, material: Material, calls: "ModelCalls") -> Draft:
        """Return the draft in our own sections, with files, and with what the model left out."""
        lists = write_file_lists(
            material.digest,
            material.removed_items,
            int(material.budget * CHARS_PER_TOKEN * _FILES_SHARE),
        )
        checklist = make_checklist(material)
        room = material.budget - estimate_text(lists)
        asked = max(int(room * (1 - CHECKLIST_SHARE)) if checklist else room, 1)
        try:
            reply = await self._ask_served(material, calls, asked, checklist)
            if reply is None:
                reply = await self._read_conversation(material, calls, asked, checklist)
        except TooLongError:
            raise SummarizerFailedError(
                f"{calls.name} holds less than a request needs; "
                "set `window` to what it holds, or name a model that holds more"
            ) from None
        users = (item.block.text for item in material.removed_items if item.kind is BlockKind.USER)
        own = parse_reply(correct_quotes(reply, users), material.covers)
        if not own.text:
            return own  # nothing is added, so that the gate sees that it is empty
        useful = material.max_useful_tokens - estimate_text(lists)
        spare = min(room, useful) * CHARS_PER_TOKEN - len(own.text)
        missing = checklist.write_missing(own.text, material.covers, spare - 8)
        whole = parse_reply("\n\n".join(filter(None, (own.text, missing))), material.covers)
        return replace(whole, text="\n\n".join(filter(None, (whole.text, lists))))

    async def _ask_served(
        self, material: Material, calls: "ModelCalls", budget: int, checklist: Checklist
    ) -> str | None:
        """Return the answer at the end of the served request; None if that is not possible."""
        from pydantic_ai.messages import ModelRequest  # noqa: PLC0415 - an optional extra

        from ..models import served_prefix  # noqa: PLC0415 - start-up time

        spoken = served_prefix.find_request_format(calls.model) if self.from_served_prefix else None
        if spoken is None or material.prefix or self.from_originals:
            return None
        task = prompts.make_task(
            prompts.UPDATE_TASK if material.previous else prompts.SUMMARY_TASK,
            prompts.convert_to_words(budget),
            material.instructions,
            checklist,
        )
        body = served_prefix.make_served_request(material, spoken, task)
        if body is None or count_cautiously(str(body)) > self._find_capacity(calls):
            return None
        try:
            settings = served_prefix.make_settings(body, int(budget * SLACK))
            return await calls.send(ModelRequest.user_text_prompt("-"), settings)
        except TooLongError:
            return None

    async def _read_conversation(
        self, material: Material, calls: "ModelCalls", budget: int, checklist: Checklist
    ) -> str:
        items, previous = await read_source(material, from_originals=self.from_originals)
        capacity = self._find_capacity(calls)
        writer = NotesWriter(calls.ask, capacity, material.instructions, checklist)
        return await writer.write(items, material.prefix, previous, budget)

    def _find_capacity(self, calls: "ModelCalls") -> int:
        return self.window or calls.model.context_window or DEFAULT_WINDOW_TOKENS

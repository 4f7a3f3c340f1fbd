"""Sends requests to a model one by one, and adds up their costs."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    SystemPromptPart,
    TextPartDelta,
    ThinkingPartDelta,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from ...domain.errors import SummarizerFailedError
from ...domain.session_events import Usage
from ...domain.summaries.summarizer import Draft
from ..models import prompts
from .model_access import translate_model_error
from .model_catalog import compute_call_cost

PriceCall = Callable[[str, Usage], float | None]
"""Returns a call's cost in US dollars by model and usage; None if it is unknown."""

THINKING_TOKENS = 4_096
"""Extra output tokens for models that cannot be kept from thinking."""


MAX_TOKEN_CHARACTERS = 16
"""Characters per token of a limit, beyond which a server is ignoring the limit."""


@dataclass
class ModelCalls:
    """The requests of one summary, with limited concurrency."""

    model: Model
    name: str
    keys: str
    """The names of its key variables."""
    at_once: asyncio.Semaphore
    settings: Mapping[str, Any] = field(default_factory=dict)
    priced: PriceCall | None = None
    replies: list[Draft] = field(default_factory=list)
    """The answers so far, with what each took."""

    async def ask(self, prompt: str, most: int, system: str = prompts.NOTES_SYSTEM_PROMPT) -> str:
        """Return the answer to a prompt, in at most that many tokens."""
        parts: list[ModelRequestPart] = [SystemPromptPart(system), UserPromptPart(prompt)]
        settings = self._make_settings(most)
        if self.model.profile.get("thinking_always_enabled"):
            settings["max_tokens"] = most + THINKING_TOKENS
        return await self.send(ModelRequest(parts=parts), settings)

    async def send(self, request: ModelRequest, settings: ModelSettings) -> str:
        async with self.at_once:
            heard = await self._receive(request, settings)
        if isinstance(heard, Exception):
            raise heard
        reply = self._make_reply(heard)
        self.replies.append(reply)
        return reply.text

    async def _receive(
        self, request: ModelRequest, settings: ModelSettings
    ) -> ModelResponse | Exception:
        """Return the response, or an exception to raise later.

        Raising it outside the `except` block keeps the provider's error out of its context, where
        the text might quote the key or the conversation.
        """
        try:
            return await self._request_response(request, settings)
        except Exception as error:  # noqa: BLE001 - clients may raise anything
            return translate_model_error(error, self.name, self.keys)

    def _make_settings(self, most: int) -> ModelSettings:
        """Return settings for a single call: no cache writes, retries or, if possible, thinking."""
        settings = ModelSettings(max_tokens=most, cache=False, max_retries=0, thinking=False)
        if not self.model.profile.get("supports_thinking"):
            settings["temperature"] = 0.0
        settings.update(self.settings)  # type: ignore[typeddict-item]
        for name in self.model.unsupported_settings & {"max_retries", "thinking", "temperature"}:
            settings.pop(name, None)
        return settings

    async def _request_response(
        self, request: ModelRequest, settings: ModelSettings
    ) -> ModelResponse:
        async with model_request_stream(self.model, [request], model_settings=settings) as stream:
            left = settings.get("max_tokens", THINKING_TOKENS) * MAX_TOKEN_CHARACTERS
            async for event in stream:
                left -= _count_characters(event)
                if left < 0:
                    raise SummarizerFailedError(f"{self.name} answered without an end")
            return stream.get()

    def sum_spent(self) -> dict[str, Any]:
        """Return what all requests took, as fields of a draft.

        The usage is None if one of them reported nothing, the cost if one price is unknown.
        """
        replies = self.replies
        usages = [reply.usage for reply in replies if reply.usage is not None]
        costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
        return {
            "model": replies[-1].model if replies else None,
            "usage": _add_usages(usages) if replies and len(usages) == len(replies) else None,
            "cost_usd": sum(costs) if replies and len(costs) == len(replies) else None,
            "was_truncated": any(reply.was_truncated for reply in replies),
        }

    def _make_reply(self, response: ModelResponse) -> Draft:
        if response.finish_reason == "content_filter":
            raise SummarizerFailedError(f"{self.name} refused to sum this up")
        if response.finish_reason == "error" or _is_cut_short(response):
            raise SummarizerFailedError(
                f"{self.name} broke off in the middle of its answer", is_transient=True
            )
        text = (response.text or "").strip()
        was_truncated = response.finish_reason == "length"
        if not text and not was_truncated:
            has_call = any(isinstance(part, ToolCallPart) for part in response.parts)
            did = "called a tool instead of writing" if has_call else "answered nothing"
            raise SummarizerFailedError(f"{self.name} {did}", is_transient=True)
        usage = _read_usage(response)
        model = response.model_name or self.model.model_name
        cost_usd = None if usage is None else (self.priced or compute_call_cost)(model, usage)
        return Draft(text, model=model, usage=usage, cost_usd=cost_usd, was_truncated=was_truncated)


def _count_characters(event: ModelResponseStreamEvent) -> int:
    match event:
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return len(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            return len(text)
    return 0


def _is_cut_short(response: ModelResponse) -> bool:
    """Return whether a response ended without a reason.

    If a Chat Completions stream breaks off, pydantic-ai reports a normal end, as some servers send
    no reason; but then the usage, which comes last, is missing too.
    """
    if response.provider_name is None:  # a user's own model, without a provider
        return False
    said = "finish_reason" in (response.provider_details or {})
    return response.finish_reason is None or not (said or response.usage.has_values())


def _read_usage(response: ModelResponse) -> Usage | None:
    """Return the reported usage; None if it is missing or impossible."""
    told = response.usage
    cached = told.cache_read_tokens + told.cache_write_tokens
    uncached = told.input_tokens - cached
    counts = (uncached, told.cache_read_tokens, told.cache_write_tokens, told.output_tokens)
    if told.unmeasured_requests or not told.has_values() or min(counts) < 0:
        return None
    return Usage(
        input=uncached,
        cache_read=told.cache_read_tokens,
        cache_write=told.cache_write_tokens,
        output=told.output_tokens,
        reasoning=told.output_reasoning_tokens or None,
    )


def _add_usages(usages: Sequence[Usage]) -> Usage:
    counts = Counter[str]()
    for usage in usages:
        counts.update(usage.model_dump(exclude_none=True))
    return Usage(**counts)

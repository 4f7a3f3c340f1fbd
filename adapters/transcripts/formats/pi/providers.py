"""Which provider and interface pi is told that a model's message came from, and why it ended."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.blocks import AnyBlock
from .signatures import ANTHROPIC, RESPONSES, signature_of


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and an interface of its, by pi's names."""

    name: str
    api: str
    native: str | None = None
    """Whose items its thoughts carry."""


_ANTHROPIC = Provider("anthropic", "anthropic-messages", ANTHROPIC)
_OPENAI = Provider("openai", "openai-responses", RESPONSES)
_GOOGLE = Provider("google", "google-generative-ai")
_UNKNOWN = Provider("unknown", "openai-completions")

_BY_MODEL = (
    (re.compile(r"claude", re.IGNORECASE), _ANTHROPIC),
    (re.compile(r"\b(gpt|codex|o\d)", re.IGNORECASE), _OPENAI),
    (re.compile(r"gemini", re.IGNORECASE), _GOOGLE),
)
_STOPPED = {
    "stop": ("stop", "end_turn", "stop_sequence", "completed", "pause_turn"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
    "toolUse": ("toolUse", "tool_use", "tool_calls", "function_call"),
    "error": ("error", "refusal", "content_filter", "failed"),
    "aborted": ("aborted", "cancelled", "incomplete"),
}
_REASONS = {theirs: ours for ours, all_theirs in _STOPPED.items() for theirs in all_theirs}


def provider_of(model: str, blocks: Sequence[AnyBlock]) -> Provider:
    """Told by what a provider must be given back, or else by the model's name."""
    for block in blocks:
        if block.native and signature_of(block.native):
            return _ANTHROPIC if block.native.provider == ANTHROPIC else _OPENAI
    return next((found for named, found in _BY_MODEL if named.search(model)), _UNKNOWN)


def stop_reason_of(reason: str | None, *, called: bool) -> str:
    """Why the model stopped, in pi's words."""
    return _REASONS.get(reason or "", "toolUse" if called else "stop")

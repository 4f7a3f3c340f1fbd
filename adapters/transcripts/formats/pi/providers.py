"""Chooses the provider, interface and stop reason of exported model messages for pi."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.blocks import AnyBlock
from .signatures import ANTHROPIC_PROVIDER, RESPONSES_PROVIDER, make_signature


@dataclass(frozen=True, slots=True)
class PiProvider:
    """A provider and its interface, by pi's names."""

    name: str
    api: str
    native_provider: str | None = None
    """The provider of the native items in its thoughts."""


_ANTHROPIC = PiProvider("anthropic", "anthropic-messages", ANTHROPIC_PROVIDER)
_OPENAI = PiProvider("openai", "openai-responses", RESPONSES_PROVIDER)
_GOOGLE = PiProvider("google", "google-generative-ai")
_UNKNOWN = PiProvider("unknown", "openai-completions")

_BY_MODEL = (
    (re.compile(r"claude", re.IGNORECASE), _ANTHROPIC),
    (re.compile(r"\b(gpt|codex|o\d)", re.IGNORECASE), _OPENAI),
    (re.compile(r"gemini", re.IGNORECASE), _GOOGLE),
)
_STOP_REASONS = {
    "stop": ("stop", "end_turn", "stop_sequence", "completed", "pause_turn"),
    "length": ("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"),
    "toolUse": ("toolUse", "tool_use", "tool_calls", "function_call"),
    "error": ("error", "refusal", "content_filter", "failed"),
    "aborted": ("aborted", "cancelled", "incomplete"),
}
_REASON_BY_SOURCE = {
    theirs: ours for ours, all_theirs in _STOP_REASONS.items() for theirs in all_theirs
}


def find_pi_provider(model: str, blocks: Sequence[AnyBlock]) -> PiProvider:
    """Return the provider of the message's native items, or else of the model's name."""
    for block in blocks:
        if block.native and make_signature(block.native):
            return _ANTHROPIC if block.native.provider == ANTHROPIC_PROVIDER else _OPENAI
    return next((found for named, found in _BY_MODEL if named.search(model)), _UNKNOWN)


def to_pi_stop_reason(reason: str | None, *, called: bool) -> str:
    return _REASON_BY_SOURCE.get(reason or "", "toolUse" if called else "stop")

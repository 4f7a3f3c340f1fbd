"""Which provider and interface pi is told that a model's message came from, and why it ended."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .....domain.blocks import AnyBlock
from .signatures import ANTHROPIC_PROVIDER, RESPONSES_PROVIDER, make_signature


@dataclass(frozen=True, slots=True)
class PiProvider:
    """A provider and an interface of its, by pi's names."""

    name: str
    api: str
    native_provider: str | None = None
    """Whose items its thoughts carry."""


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
    """Told by what a provider must be given back, or else by the model's name."""
    for block in blocks:
        if block.native and make_signature(block.native):
            return _ANTHROPIC if block.native.provider == ANTHROPIC_PROVIDER else _OPENAI
    return next((found for named, found in _BY_MODEL if named.search(model)), _UNKNOWN)


def to_pi_stop_reason(reason: str | None, *, called: bool) -> str:
    """Why the model stopped, in pi's words."""
    return _REASON_BY_SOURCE.get(reason or "", "toolUse" if called else "stop")

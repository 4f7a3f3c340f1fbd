"""Lists windows and output limits of models that the price catalog lacks.

genai-prices has no output limits at all, and lacks the windows of some models. The values are those
that the makers document: Anthropic's Models API (`max_tokens`), OpenAI's model pages and Google's
Gemini API pages, as of November 2026. Undocumented limits are left out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The largest input and output of a model, in tokens; None if unknown."""

    context: int | None = None
    output: int | None = None
    is_output_reserved: bool = False
    """Whether the longest possible answer is always subtracted from what a prompt may have."""


UNKNOWN_LIMITS = TokenLimits()

CONTEXT_BY_BETA: dict[str, tuple[re.Pattern[str], int]] = {
    "context-1m-2025-08-07": (re.compile("sonnet"), 1_000_000),
}
"""Betas that enlarge the context: a pattern of the models that support them, and the tokens."""

_RESERVED = TokenLimits(output=128_000, is_output_reserved=True)

_MODEL_LIMITS: dict[str, TokenLimits] = {
    r"claude-(?:fable|mythos)-5(?:[-.]\d)?": TokenLimits(output=128_000),
    r"claude-(?:opus|sonnet|haiku)-5(?:[-.]5)?": TokenLimits(output=128_000),
    r"claude-opus-4[-.][678]|claude-sonnet-4[-.]6": TokenLimits(output=128_000),
    r"claude-(?:haiku|opus|sonnet)-4[-.]5|claude-4[-.]5-(?:haiku|opus|sonnet)": TokenLimits(
        output=64_000
    ),
    r"claude-opus-4(?:[-.][01])?|claude-4-opus": TokenLimits(output=32_000),
    r"claude-sonnet-4(?:[-.]0)?|claude-4-sonnet|claude-3[-.]7-sonnet": TokenLimits(output=64_000),
    r"claude-3[-.]5-(?:sonnet|haiku)": TokenLimits(output=8_192),
    r"claude-3-(?:opus|sonnet|haiku)": TokenLimits(output=4_096),
    r"gpt-5(?:[-.][12])?(?:-mini|-nano|-codex)?": _RESERVED,
    r"gpt-5[-.]4(?:-mini|-nano)?|gpt-5[-.]5|gpt-5[-.]6(?:-sol|-terra|-luna)?": _RESERVED,
    r"gpt-6-(?:sol|luna)": _RESERVED,
    r"gpt-4\.1(?:-mini|-nano)?": TokenLimits(output=32_768),
    r"gpt-4o(?:-mini)?": TokenLimits(output=16_384),
    r"o1|o3|o3-mini|o3-pro|o4-mini": TokenLimits(output=100_000),
    r"gemini-2\.5-(?:pro|flash|flash-lite)": TokenLimits(1_048_576, 65_536),
    r"gemini-3(?:\.1)?-pro|gemini-3-flash|gemini-3\.1-flash-lite": TokenLimits(1_048_576, 65_536),
}
"""By a pattern of the maker's own model name."""

_DATED = r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|preview.*))?"
_COMPILED = [(re.compile(f"(?:{name}){_DATED}"), limits) for name, limits in _MODEL_LIMITS.items()]


def find_beta_context(bare: str, betas: Iterable[str]) -> int:
    """Return the tokens of context that betas give a model, by its maker's name; 0 for none."""
    larger = (CONTEXT_BY_BETA[beta] for beta in betas if beta in CONTEXT_BY_BETA)
    return max((context for name, context in larger if name.search(bare)), default=0)


def find_model_limits(bare: str) -> TokenLimits:
    """Return the limits of a model by its maker's name."""
    return next((limits for name, limits in _COMPILED if name.fullmatch(bare)), UNKNOWN_LIMITS)

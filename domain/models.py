"""Defines the facts about a model: its context, its longest answer, and its prices."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .session_events import Usage

PRICED_TOKENS = 1_000_000
"""Prices are for this many tokens."""


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens, once a prompt is larger than `above`."""

    input: float
    """For prompt tokens that are neither read from nor written to a cache."""
    output: float
    cache_read: float | None = None
    """None if cached tokens are not cheaper."""
    cache_write: float | None = None
    """None if writing to the cache costs the same as other input."""
    cache_write_1h: float | None = None
    """For tokens that the cache keeps for an hour; None if that costs the same as other writes."""
    above: int = 0

    @property
    def read_price(self) -> float:
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write_price(self) -> float:
        return self.input if self.cache_write is None else self.cache_write

    @property
    def write_1h_price(self) -> float:
        return self.write_price if self.cache_write_1h is None else self.cache_write_1h


class CallCost(NamedTuple):
    """The cost of one call in US dollars, by the kind of token."""

    input: float
    cache_read: float
    cache_write: float
    output: float


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """Facts about a model that the user corrects; None leaves a fact unchanged."""

    context: int | None = None
    output: int | None = None
    input_usd: float | None = None
    cache_read_usd: float | None = None
    cache_write_usd: float | None = None
    output_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model as one provider serves it; None and empty mean unknown."""

    name: str
    provider: str | None = None
    family: str | None = None
    """The model's maker, independent of the provider: anthropic, openai, google, ..."""
    context: int | None = None
    """Tokens of the window."""
    prompt: int | None = None
    """Tokens that a prompt may have: the window, or the window less the longest answer."""
    output: int | None = None
    """Tokens that an answer may have."""
    prices: tuple[Prices, ...] = ()
    """By size of the prompt, `above` ascending: the last that applies prices the whole prompt."""
    is_context_set: bool = False
    """Whether the user's settings give the window."""

    def find_prices(self, prompt: int) -> Prices | None:
        """Return the prices for a prompt of that size; None if unknown."""
        applies = [prices for prices in self.prices if prompt > prices.above or not prices.above]
        return applies[-1] if applies else None

    def compute_cost(self, usage: Usage) -> float | None:
        """Return the cost of a call in US dollars; None if its prices or tokens are unknown."""
        parts = self.compute_cost_parts(usage)
        return None if parts is None else sum(parts)

    def compute_cost_parts(self, usage: Usage) -> CallCost | None:
        """Return the cost of a call by the kind of token; None if unknown."""
        prompt = usage.context
        if prompt is None or usage.output is None:
            return None
        prices = self.find_prices(prompt)
        if prices is None:
            return None
        written = usage.cache_write or 0
        for_an_hour = min(usage.cache_write_1h or 0, written)
        return CallCost(
            (usage.input or 0) * prices.input / PRICED_TOKENS,
            (usage.cache_read or 0) * prices.read_price / PRICED_TOKENS,
            ((written - for_an_hour) * prices.write_price + for_an_hour * prices.write_1h_price)
            / PRICED_TOKENS,
            usage.output * prices.output / PRICED_TOKENS,
        )

    def apply_override(self, override: ModelOverride) -> "ModelFacts":
        """Return these facts with the user's corrections.

        A corrected price applies to prompts of any size. Prices are known only if an input and an
        output price are.
        """
        prices = self.prices
        dollars = {
            "input": override.input_usd,
            "output": override.output_usd,
            "cache_read": override.cache_read_usd,
            "cache_write": override.cache_write_usd,
        }
        given: dict[str, Any] = {name: usd for name, usd in dollars.items() if usd is not None}
        if "cache_write" in given:
            given["cache_write_1h"] = None  # a corrected price applies to all writes
        if given and (known := self.find_prices(0)) is not None:
            prices = (replace(known, **given),)
        elif given:
            prices = (Prices(**given),) if {"input", "output"} <= given.keys() else ()
        return replace(
            self,
            context=override.context or self.context,
            is_context_set=override.context is not None,
            prompt=self.prompt
            if override.context is None
            else max(1, override.context - self._reserved_tokens),
            output=override.output or self.output,
            prices=prices,
        )

    @property
    def _reserved_tokens(self) -> int:
        """Tokens of the window that a prompt may not use."""
        return 0 if self.context is None or self.prompt is None else self.context - self.prompt


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

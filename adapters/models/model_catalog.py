"""Looks up windows, limits and prices of models in the installed data of genai-prices.

Nothing is downloaded. An unknown name has no facts, and neither has one that only resembles a known
one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...domain.context_limit import LARGER_WINDOW_TOKENS, is_larger_variant
from ...domain.models import (
    CallCost,
    ModelFacts,
    ModelOverride,
    Prices,
    find_beta_context,
    find_model_limits,
)
from ...domain.session_events import Usage
from .model_names import ModelName, parse_model_name

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice


_DATE = re.compile(r"(?<=-)(20\d\d)(\d\d)(\d\d)(?!\d)")

_NO_OVERRIDES: Mapping[str, ModelOverride] = {}


def look_up_facts(
    model: str,
    overrides: Mapping[str, ModelOverride] = _NO_OVERRIDES,
    *,
    at: datetime | None = None,
    betas: Sequence[str] = (),
) -> ModelFacts | None:
    """Return the facts of a model named by an agent, provider or router; None if it is unknown.

    `overrides` are found by the given name, the maker's or the catalog's. Prices are as of `at`, or
    today. `betas` are those of its calls, such as `context-1m-2025-08-07`, which may enlarge the
    window even of an unknown model.
    """
    known = _apply_betas(model, _look_up(model, at or datetime.now(UTC)), betas)
    by = _find_override(model, known, overrides)
    if by is None:
        return known
    return (known or ModelFacts(model)).apply_override(by)


def compute_call_cost(
    model: str,
    usage: Usage,
    overrides: Mapping[str, ModelOverride] = _NO_OVERRIDES,
    *,
    at: datetime | None = None,
) -> float | None:
    """Return the cost of a call in US dollars; None if it is unknown."""
    facts = look_up_facts(model, overrides, at=at)
    return facts.compute_cost(usage) if facts else None


class PriceLookup:
    """Prices calls, looking each model up once for each half hour, in which prices are the same."""

    def __init__(self, overrides: Mapping[str, ModelOverride] = _NO_OVERRIDES) -> None:
        self._look_up = lru_cache(maxsize=1_000)(
            lambda model, at: look_up_facts(model, overrides, at=at)
        )

    def price_call(self, model: str | None, usage: Usage | None, at: datetime) -> CallCost | None:
        """Return the parts of a call's cost; None if its price or its tokens are unknown."""
        if model is None or usage is None:
            return None
        facts = self._look_up(
            model, at.replace(minute=at.minute // 30 * 30, second=0, microsecond=0)
        )
        return facts.compute_cost_parts(usage) if facts else None


def _look_up(model: str, at: datetime) -> ModelFacts | None:
    for reading in parse_model_name(model):
        if (found := _find_entry(reading)) is not None:
            provider, info = found
            facts = _make_facts(reading, provider, info, at)
            if is_larger_variant(model):
                larger = max(LARGER_WINDOW_TOKENS, facts.context or 0)
                facts = replace(facts, context=larger, prompt=larger)
            return facts
    return None


def _apply_betas(model: str, known: ModelFacts | None, betas: Sequence[str]) -> ModelFacts | None:
    """Return the facts with the window that the betas give, if it is larger."""
    larger = max(
        (find_beta_context(reading.maker_name, betas) for reading in parse_model_name(model)),
        default=0,
    )
    facts = known or ModelFacts(model)
    if larger <= (facts.context or 0):
        return known
    return replace(facts, context=larger, prompt=larger)


def _find_entry(name: ModelName) -> tuple[str, "ModelInfo"] | None:
    # The import takes half a second, so only lookups pay for it.
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - start-up time

    try:
        provider, info = get_snapshot().find_provider_model(name.name, None, name.provider, None)
    except LookupError:
        return None
    # Routers write dates without dashes; the catalog's own search accepts both forms.
    spellings = (name.name, _DATE.sub(r"\1-\2-\3", name.name))
    is_meant = any(_matches_exactly(info.match, spelling) for spelling in spellings)
    return (provider.id, info) if is_meant else None


def _make_facts(name: ModelName, provider: str, info: "ModelInfo", at: datetime) -> ModelFacts:
    limits = find_model_limits(name.maker_name)
    context = info.context_window or limits.context
    if context is None and name.family:
        # If a router does not state a window, use the maker's.
        made = _find_entry(ModelName("", name.family, name.maker_name))
        context = made[1].context_window if made else None
    return ModelFacts(
        name=info.id,
        provider=provider,
        family=name.family,
        context=context,
        prompt=context and context - ((limits.is_output_reserved and limits.output) or 0),
        output=limits.output,
        prices=_make_prices(info.get_prices(at), is_free=name.name.endswith(":free")),
    )


def _make_prices(price: "ModelPrice", *, is_free: bool) -> tuple[Prices, ...]:
    """Return prices by prompt size; none if the model charges for more than tokens."""
    said = {name: value for name, value in price.__dict__.items() if value is not None}
    if is_free and not said:
        return (Prices(0.0, 0.0),)
    if "input_mtok" not in said or "output_mtok" not in said or "requests_kcount" in said:
        return ()
    starts = {0, *(tier.start for value in said.values() for tier in getattr(value, "tiers", ()))}
    fields = {
        field: said[f"{field}_mtok"]
        for field in ("input", "output", "cache_read", "cache_write", "cache_write_1h")
        if f"{field}_mtok" in said
    }
    return tuple(
        Prices(**{name: _price_at(price, start) for name, price in fields.items()}, above=start)
        for start in sorted(starts)
    )


def _price_at(price: Any, start: int) -> float:
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(tiers[-1] if tiers else getattr(price, "base", price))


_SAME_MODEL = re.compile(
    r"(?:[-@](?:20\d{6}|20\d\d-\d\d-\d\d|\d\d-\d\d(?:-\d{4})?|\d{3,4}"
    r"|beta|default|exp|latest|preview|thinking|v\d+))*(?::\d+)?"
)
"""Dates and versions of the same model, after a known name; `-mini`, `-5` and `:8b` are others."""
_CUT_SHORT = re.compile(r"(?:[-@]\d*)?$")
"""The partial date at the end of a catalog rule."""


def _matches_exactly(match: Any, name: str) -> bool:
    """Return whether a catalog rule means exactly this name, and not only its beginning."""
    if not match.is_match(name):
        return False
    if alternatives := getattr(match, "or_", None):
        return any(_matches_exactly(one, name) for one in alternatives)
    if conditions := getattr(match, "and_", None):
        return all(
            _matches_exactly(one, name) for one in conditions if not hasattr(one, "contains")
        )
    begins = getattr(match, "starts_with", None) or getattr(match, "contains", None)
    if begins is None:
        return True
    begins = begins.lower()
    rest = name[name.index(begins) + len(begins) :]
    if rest[:1].isalnum():
        rest = begins[_CUT_SHORT.search(begins).start() :] + rest  # type: ignore[union-attr]
    return _SAME_MODEL.fullmatch(rest) is not None


def _find_override(
    model: str, known: ModelFacts | None, overrides: Mapping[str, ModelOverride]
) -> ModelOverride | None:
    if not overrides:
        return None
    by_name = {name.strip().lower(): override for name, override in overrides.items()}
    names = [model.strip().lower(), *(reading.maker_name for reading in parse_model_name(model))]
    names += [known.name.lower()] if known else []
    return next((by_name[name] for name in names if name in by_name), None)


CHEAP_MODELS = {
    ("anthropic", "anthropic"): "claude-haiku-5-5",
    ("aws", "anthropic"): "anthropic.claude-haiku-5-5",
    ("deepseek", "deepseek"): "deepseek-v4-flash",
    ("google", "anthropic"): "claude-haiku-5-5",
    ("google", "google"): "gemini-2.5-flash-lite",
    ("mistral", "mistral"): "mistral-small-2603",
    ("moonshotai", "moonshotai"): "kimi-k2.5",
    ("openai", "openai"): "gpt-6-luna",
    ("openrouter", "anthropic"): "anthropic/claude-haiku-5.5",
    ("openrouter", "deepseek"): "deepseek/deepseek-v4-flash",
    ("openrouter", "google"): "google/gemini-2.5-flash-lite",
    ("openrouter", "mistral"): "mistralai/mistral-small-2603",
    ("openrouter", "openai"): "openai/gpt-6-luna",
    ("openrouter", "zai"): "z-ai/glm-5.3-flash",
    ("x-ai", "x-ai"): "grok-4-1-fast-non-reasoning",
    ("zai", "zai"): "glm-5.3-flash",
    ("zhipuai", "zai"): "glm-5.3-flash",
}
"""Each maker's small text model for long sessions, by serving provider and maker. Azure is missing,
as its customers name their models.
"""


def find_cheaper_model(model: str) -> str:
    """Return a cheaper model of the same maker and provider, named in the same style.

    Returns the model itself if none is known, or none is cheaper for both input and output.
    """
    served = look_up_facts(model)
    if served is None or not served.prices or served.provider is None or served.family is None:
        return model
    named = CHEAP_MODELS.get((served.provider, served.family))
    if named is None:
        return model
    candidate = _copy_prefix(model, served.provider, named)
    cheap = look_up_facts(candidate)
    if cheap is None or not cheap.prices:
        return model
    ours, theirs = cheap.prices[0], served.prices[0]
    return candidate if ours.input < theirs.input and ours.output <= theirs.output else model


def _copy_prefix(model: str, provider: str, name: str) -> str:
    """Return the name with the prefixes of the model's own: `anthropic:`, `bedrock/`, `us.`."""
    said = parse_model_name(model)
    meant = next((one for one in said if one.provider == provider), said[0])
    return f"{meant.prefix}{meant.region}{name}"

"""Prices a dry run: by the model that was named or called last, for the calls that are expected."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....domain.models import ModelFacts, ModelOverride
from ....domain.pricing import Pricing
from ...runtime.compaction.outcome import Outcome

CENTS = 6
"""Digits of a dollar behind the point."""


def priced(
    outcome: Outcome,
    model: str | None,
    calls: int,
    overrides: Mapping[str, ModelOverride] | None = None,
) -> Pricing | None:
    """The price of what would be done; None where nothing would."""
    if outcome.pricing is None:
        return None
    name = model or outcome.called
    return replace(
        outcome.pricing, model=_facts(name, overrides or {}) if name else None, expected_calls=calls
    )


def pricing_as_json(pricing: Pricing) -> dict[str, Any]:
    """A price as `compact --dry-run --json` says it; what is not known is null."""
    facts = pricing.model
    return {
        "model": facts.name if facts else None,
        "provider": facts.provider if facts else None,
        "expected_calls": pricing.expected_calls,
        "saves_tokens": pricing.saves_tokens,
        "unchanged_tokens": pricing.unchanged,
        "cached_tokens": pricing.cached,
        "breaks_cache_tokens": pricing.breaks_cache_tokens,
        "saves_per_call_usd": _dollars(pricing.saves_per_call_usd),
        "saves_usd": _dollars(pricing.saves_usd),
        "breaks_cache_usd": _dollars(pricing.breaks_cache_usd),
        "summary_usd": _dollars(pricing.summary_usd),
        "net_usd": _dollars(pricing.net_usd),
        "pays_after": pricing.pays_after,
        "is_worthwhile": pricing.is_worthwhile(),
    }


def _facts(name: str, overrides: Mapping[str, ModelOverride]) -> ModelFacts:
    # The catalog takes half a second to load: only a dry run pays for it.
    from ...models.model_catalog import facts_of  # noqa: PLC0415

    return facts_of(name, overrides) or ModelFacts(name)


def _dollars(amount: float | None) -> float | None:
    return None if amount is None else round(amount, CENTS)

"""Prices a dry run with the named or last model, for the expected number of calls."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ....domain.models import ModelFacts, ModelOverride
from ....domain.pricing import Pricing
from ...runtime.compaction.outcome import CompactionOutcome

COST_DIGITS = 6
"""Decimal places of dollars."""


def price_outcome(
    outcome: CompactionOutcome,
    model: str | None,
    calls: int,
    overrides: Mapping[str, ModelOverride] | None = None,
) -> Pricing | None:
    """Return the price of the compaction; None if nothing would be compacted."""
    if outcome.pricing is None:
        return None
    name = model or outcome.last_model
    return replace(
        outcome.pricing,
        model=_find_facts(name, overrides or {}) if name else None,
        expected_calls=calls,
    )


def pricing_to_json(pricing: Pricing) -> dict[str, Any]:
    """Return a price as `compact --dry-run --json` prints it; unknown values are null."""
    facts = pricing.model
    return {
        "model": facts.name if facts else None,
        "provider": facts.provider if facts else None,
        "expected_calls": pricing.expected_calls,
        "saves_tokens": pricing.tokens_saved,
        "unchanged_tokens": pricing.unchanged,
        "cached_tokens": pricing.cached,
        "breaks_cache_tokens": pricing.cache_tokens_lost,
        "saves_per_call_usd": _round_dollars(pricing.saved_per_call_usd),
        "saves_usd": _round_dollars(pricing.saved_usd),
        "breaks_cache_usd": _round_dollars(pricing.cache_loss_usd),
        "summary_usd": _round_dollars(pricing.summary_usd),
        "net_usd": _round_dollars(pricing.net_usd),
        "pays_after": pricing.break_even_calls,
        "is_worthwhile": pricing.is_worthwhile(),
    }


def _find_facts(name: str, overrides: Mapping[str, ModelOverride]) -> ModelFacts:
    # The catalog takes half a second to load.
    from ...models.model_catalog import look_up_facts  # noqa: PLC0415

    return look_up_facts(name, overrides) or ModelFacts(name)


def _round_dollars(amount: float | None) -> float | None:
    return None if amount is None else round(amount, COST_DIGITS)

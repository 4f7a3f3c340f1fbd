"""Prices one planned compaction: by its window, what was settled, and who writes the summary."""

from dataclasses import replace

from .models import ModelFacts
from .pricing import Pricing, SummaryCall
from .settlement import Settlement
from .summaries.summarizer import Draft, Material
from .token_estimate import estimate_text
from .window import Plan, Window


def price_compaction(
    window: Window,
    settlement: Settlement,
    plan: Plan,
    prices: ModelFacts | None,
    expected_calls: int,
    *,
    summary_call: SummaryCall | None = None,
    draft: Draft | None = None,
) -> Pricing:
    """What the settled plan costs and saves, on the model `prices`.

    Before the summary is written, its size is what the plan allows, and its price that of `order`;
    without one no model writes it. A `draft` says how large it became, and what it did cost.
    """
    pricing = replace(
        window.price(
            settlement.kept_tokens,
            plan.summary_tokens if draft is None else estimate_text(draft.text),
        ),
        model=prices,
        expected_calls=expected_calls,
        summary=summary_call,
    )
    if draft is None:
        return pricing
    if draft.model is None:
        return replace(pricing, summary=None)
    if draft.cost_usd is not None:
        return replace(pricing, paid_usd=draft.cost_usd)
    # A model wrote it, and nobody can say for how much: that is no reason to call it free.
    return pricing if summary_call else replace(pricing, summary=SummaryCall(None, 0, 0))


def size_summary_call(
    window: Window,
    material: Material,
    model: ModelFacts | None,
    *,
    on_served_prefix: bool = False,
) -> SummaryCall:
    """What the model `model` is given to write the summary: its material, or all that was
    served."""
    if on_served_prefix:
        cached = window.price(0, 0).cached
        return SummaryCall(model, window.tokens, material.budget, cached)
    given = estimate_text(material.previous or "") + sum(
        item.tokens for item in material.removed_items
    )
    return SummaryCall(model, given, material.budget)

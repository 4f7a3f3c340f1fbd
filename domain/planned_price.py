"""Prices one planned compaction: by its window, what was settled, and who writes the summary."""

from dataclasses import replace

from .coverage import Settlement
from .models import ModelFacts
from .pricing import Pricing, SummaryOrder
from .summaries.summariser import Draft, Material
from .token_budget import estimate_text
from .window import Plan, Window


def pricing_of(
    window: Window,
    settlement: Settlement,
    plan: Plan,
    prices: ModelFacts | None,
    expected_calls: int,
    *,
    order: SummaryOrder | None = None,
    draft: Draft | None = None,
) -> Pricing:
    """What the settled plan costs and saves, on the model `prices`.

    Before the summary is written, its size is what the plan allows, and its price that of `order`;
    without one no model writes it. A `draft` says how large it became, and what it did cost.
    """
    pricing = replace(
        window.pricing(
            settlement.kept_tokens,
            plan.summary_tokens if draft is None else estimate_text(draft.text),
        ),
        model=prices,
        expected_calls=expected_calls,
        summary=order,
    )
    if draft is None:
        return pricing
    if draft.model is None:
        return replace(pricing, summary=None)
    if draft.cost_usd is not None:
        return replace(pricing, paid_usd=draft.cost_usd)
    # A model wrote it, and nobody can say for how much: that is no reason to call it free.
    return pricing if order else replace(pricing, summary=SummaryOrder(None, 0, 0))


def order_of(
    window: Window,
    material: Material,
    model: ModelFacts | None,
    *,
    on_served_prefix: bool = False,
) -> SummaryOrder:
    """What the model `model` is given to write the summary: its material, or all that was
    served."""
    if on_served_prefix:
        cached = window.pricing(0, 0).cached
        return SummaryOrder(model, window.tokens, material.budget, cached)
    given = estimate_text(material.previous or "") + sum(item.tokens for item in material.gone)
    return SummaryOrder(model, given, material.budget)

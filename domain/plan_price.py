"""Prices one planned compaction from its window, its settlement and its summarizer."""

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
    """Return what the settled plan costs and saves on the model `prices`.

    Before the summary is written, its size is the plan's limit and its price that of `order`;
    without an order, no model writes it. A `draft` gives the real size and cost.
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
    # A model wrote it at an unknown price, which does not make it free.
    return pricing if summary_call else replace(pricing, summary=SummaryCall(None, 0, 0))


def size_summary_call(
    window: Window,
    material: Material,
    model: ModelFacts | None,
    *,
    on_served_prefix: bool = False,
) -> SummaryCall:
    """Return the size of the summary's call: for its material, or for the whole served view."""
    if on_served_prefix:
        cached = window.price(0, 0).cached
        return SummaryCall(model, window.tokens, material.budget, cached)
    given = estimate_text(material.previous or "") + sum(
        item.tokens for item in material.removed_items
    )
    return SummaryCall(model, given, material.budget)

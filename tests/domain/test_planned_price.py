"""A settled plan has the price of what it keeps, and of who writes the summary."""

from dataclasses import replace

import pytest

from cutbank.domain.blocks import Block
from cutbank.domain.item import Item
from cutbank.domain.models import ModelFacts, Prices
from cutbank.domain.plan_price import order_of, pricing_of
from cutbank.domain.settlement import settle
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

SONNET = ModelFacts(
    "sonnet", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),)
)
WINDOW = Window(
    items=tuple(
        Item(position=at, block=Block.user("words"), turn=at, tokens=1_000) for at in range(1, 11)
    ),
    after=10,
    limit=200_000,
    overhead=500,
)
PLAN = Plan(cut=9, reason="because", summary_tokens=400)
SETTLED = settle(WINDOW, PLAN)
MATERIAL = Material(gone=SETTLED.gone, covers=SETTLED.covers, budget=PLAN.summary_tokens)
WRITTEN = Draft(text="t" * 800)


def test_before_it_is_written_the_summary_is_as_large_as_it_may_be() -> None:
    pricing = pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10)

    assert (pricing.before, pricing.after) == (10_500, 500 + 400 + 2_000)
    assert pricing.summary_usd == 0


def test_once_it_is_written_its_own_size_counts() -> None:
    pricing = pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10, draft=WRITTEN)

    assert pricing.after == 500 + 200 + 2_000


def test_a_models_summary_is_ordered_with_what_leaves() -> None:
    order = order_of(WINDOW, MATERIAL, SONNET)

    pricing = pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10, order=order)

    assert (order.input, order.cached, order.output) == (8_000, 0, 400)
    assert pricing.summary_usd == pytest.approx((8_000 * 3 + 400 * 15) / 1e6)


def test_on_the_served_prefix_all_of_it_is_read_and_little_is_paid() -> None:
    order = order_of(WINDOW, MATERIAL, SONNET, on_served_prefix=True)
    colder = order_of(replace(WINDOW, cached=0), MATERIAL, SONNET, on_served_prefix=True)

    assert order.usd == pytest.approx((10_500 * 0.3 + 400 * 15) / 1e6)
    assert colder.usd == pytest.approx((10_500 * 3 + 400 * 15) / 1e6)


def test_what_a_draft_did_cost_is_not_reckoned() -> None:
    order = order_of(WINDOW, MATERIAL, SONNET)
    draft = replace(WRITTEN, model="haiku", cost_usd=0.0123)

    assert pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10, order=order, draft=draft).summary_usd == (
        0.0123
    )


def test_a_draft_of_no_model_is_free_though_another_was_asked_first() -> None:
    order = order_of(WINDOW, MATERIAL, SONNET)

    pricing = pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10, order=order, draft=WRITTEN)

    assert pricing.summary_usd == 0


def test_a_draft_of_a_model_whose_price_nobody_knows_is_not_free() -> None:
    draft = replace(WRITTEN, model="local")

    pricing = pricing_of(WINDOW, SETTLED, PLAN, SONNET, 10, draft=draft)

    assert pricing.summary_usd is None
    assert pricing.is_worthwhile() is None

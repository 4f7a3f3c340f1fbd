"""A settled plan has the price of what it keeps, and of who writes the summary."""

from dataclasses import replace

from cutbank import Block, Draft, ModelFacts, Plan, Prices, Window, WindowItem
from cutbank.domain.settlement import (
    price_compaction,
    settle_plan,
    settle_plan_to_fit,
)
from cutbank.domain.token_estimate import ContentKind, TokenCalibration

SONNET = ModelFacts(
    "sonnet", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),)
)
WINDOW = Window(
    items=tuple(
        WindowItem(position=at, block=Block.user("words"), turn=at, tokens=1_000)
        for at in range(1, 11)
    ),
    after=10,
    limit=200_000,
    overhead=500,
)
PLAN = Plan(cut=9, reason="because", summary_tokens=400)
SETTLED = settle_plan(WINDOW, PLAN)
WRITTEN = Draft(text="t" * 800)


def test_a_plan_that_would_not_fit_keeps_as_much_as_fits_exactly() -> None:
    # Beside two blocks and the overhead there is room for a twentieth: 131 tokens of a summary.
    fitting = settle_plan_to_fit(replace(WINDOW, limit=2_631), replace(PLAN, cut=3))
    tighter = settle_plan_to_fit(replace(WINDOW, limit=2_630), replace(PLAN, cut=3))

    assert (fitting.first_kept, tighter.first_kept) == (9, 10)


def test_a_summary_has_its_own_size_once_it_is_written_and_the_most_it_may_have_before() -> None:
    before = price_compaction(WINDOW, SETTLED, PLAN, SONNET, 10)
    written = price_compaction(WINDOW, SETTLED, PLAN, SONNET, 10, draft=WRITTEN)

    assert (before.before, before.after) == (10_500, 500 + 400 + 2_000)
    assert before.summary_usd == 0
    assert written.after == 500 + 200 + 2_000


def test_a_summary_is_counted_in_the_models_tokens_as_the_rest_of_the_view_is() -> None:
    doubled = TokenCalibration(prior={ContentKind.REQUEST: 2.0})
    window = replace(WINDOW, calibration=doubled)

    pricing = price_compaction(window, SETTLED, PLAN, SONNET, 10, draft=WRITTEN)

    assert pricing.after == 500 + 2 * 200 + 2_000


def test_a_draft_costs_what_was_paid_for_it() -> None:
    rows = [
        (0.0123, replace(WRITTEN, model="haiku", cost_usd=0.0123)),
        (0, replace(WRITTEN, model="haiku", cost_usd=0.0)),
        (0, WRITTEN),  # by no model
        (None, replace(WRITTEN, model="local")),
    ]

    for usd, draft in rows:
        assert price_compaction(WINDOW, SETTLED, PLAN, SONNET, 10, draft=draft).summary_usd == usd

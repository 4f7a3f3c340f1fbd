"""What a compaction costs and saves: by hand, for all numbers, and in cases that others report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank import Block, Draft, ModelFacts, Plan, Prices, Window, WindowItem
from cutbank.domain.pricing import Pricing, format_dollars
from cutbank.domain.settlement import (
    price_compaction,
    settle_plan,
    settle_plan_to_fit,
)
from cutbank.domain.token_estimate import ContentKind, TokenCalibration

SONNET = ModelFacts(
    "sonnet", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),)
)

HALVED = Pricing(
    before=100_000, after=30_000, unchanged=10_000, cached=100_000, model=SONNET, expected_calls=10
)


def test_a_warm_cache_is_paid_for_once_and_then_each_call_saves() -> None:
    # Each call reads 70,000 tokens less at 0.3; the next one writes 20,000 at 3.75 instead.
    assert HALVED.saved_per_call_usd == pytest.approx(0.021)
    assert HALVED.saved_usd == pytest.approx(0.21)
    assert HALVED.cache_tokens_lost == 20_000
    assert HALVED.cache_loss_usd == pytest.approx(20_000 * 3.45 / 1e6)
    assert HALVED.summary_usd == 0
    assert HALVED.net_usd == pytest.approx(0.141)
    assert HALVED.break_even_calls == 4  # 0.069 / 0.021 = 3.3
    assert HALVED.is_worthwhile(4)
    assert not HALVED.is_worthwhile(3)


def test_the_first_call_costs_what_the_provider_will_bill() -> None:
    as_it_is = 100_000 * 0.3 / 1e6
    compacted = (10_000 * 0.3 + 20_000 * 3.75) / 1e6

    assert replace(HALVED, expected_calls=1).net_usd == pytest.approx(as_it_is - compacted)


def test_only_what_is_cached_can_be_broken() -> None:
    half, cold = replace(HALVED, cached=85_000), replace(HALVED, cached=0)

    assert half.cache_tokens_lost == 5_000
    assert half.cache_loss_usd == pytest.approx(5_000 * 3.45 / 1e6)
    # The next call writes 30,000 tokens instead of 100,000, and the nine others read as much less.
    assert (cold.cache_tokens_lost, cold.cache_loss_usd) == (0, 0)
    assert cold.saved_usd == pytest.approx((70_000 * 3.75 + 9 * 70_000 * 0.3) / 1e6)
    assert cold.break_even_calls == 0


def test_a_summary_is_paid_for_and_without_its_price_nothing_is_known() -> None:
    bought = replace(HALVED, summary_usd=0.08)

    assert bought.net_usd == pytest.approx(0.141 - 0.08)
    assert bought.break_even_calls == 8  # (0.069 + 0.08) / 0.021 = 7.1
    unknown = replace(HALVED, summary_usd=None)
    assert unknown.saved_usd == pytest.approx(0.21)
    assert unknown.net_usd is None
    assert unknown.is_worthwhile() is None


def test_leaving_the_dearer_tier_saves_and_growing_never_pays() -> None:
    tiered = ModelFacts("t", prices=(*SONNET.prices, Prices(6, 22.5, 0.6, 7.5, above=200_000)))
    large = Pricing(250_000, 50_000, 0, 250_000, tiered, expected_calls=1)
    grown = Pricing(60_000, 100_000, 20_000, 60_000, SONNET, expected_calls=1)

    assert large.saved_per_call_usd == pytest.approx((250_000 * 0.6 - 50_000 * 0.3) / 1e6)
    assert not grown.is_worthwhile()
    assert grown.break_even_calls is None


def test_without_prices_there_are_tokens_and_no_money() -> None:
    for model in (None, ModelFacts("unheard-of")):
        unpriced = replace(HALVED, model=model)

        assert (unpriced.tokens_saved, unpriced.cache_tokens_lost) == (70_000, 20_000)
        assert unpriced.saved_usd is unpriced.net_usd is unpriced.break_even_calls is None
        assert unpriced.is_worthwhile() is None


def test_five_small_prunes_lose_where_a_single_one_pays() -> None:
    # macanderson/stella#4381: 137 K tokens were billed anew to save 4 to 8 K five times.
    small = [
        Pricing(100_000, 100_000 - saved, 100_000 - saved - 27_400, 100_000, SONNET, 20)
        for saved in (4_000, 5_000, 6_000, 7_000, 8_000)
    ]
    single = Pricing(100_000, 70_000, 70_000 - 27_400, 100_000, SONNET, 20)

    assert sum(pricing.cache_tokens_lost for pricing in small) == 137_000
    assert [pricing.break_even_calls for pricing in small] == [79, 64, 53, 46, 40]
    assert not any(pricing.is_worthwhile() for pricing in small)
    assert single.break_even_calls == 11
    assert single.is_worthwhile()


DOLLARS = st.floats(0, 100, allow_subnormal=False).map(lambda price: round(price, 3))
PRICES = st.builds(
    Prices, input=DOLLARS, output=DOLLARS, cache_read=DOLLARS | st.none(), cache_write=DOLLARS
)
MODELS = PRICES.map(lambda prices: ModelFacts("any", prices=(prices,)))


@st.composite
def pricings(draw: st.DrawFn) -> Pricing:
    """A view that becomes smaller, whatever is cached of it."""
    before = draw(st.integers(1, 2_000_000))
    after = draw(st.integers(0, before))
    return Pricing(
        before=before,
        after=after,
        unchanged=draw(st.integers(0, after)),
        cached=draw(st.integers(0, before)),
        model=draw(MODELS),
        expected_calls=draw(st.integers(0, 1_000)),
        summary_usd=draw(DOLLARS),
    )


@given(pricings(), st.integers(0, 500), st.integers(0, 500))
def test_more_calls_never_make_it_worse(pricing: Pricing, calls: int, more: int) -> None:
    fewer = replace(pricing, expected_calls=calls).net_usd
    later = replace(pricing, expected_calls=calls + more).net_usd

    assert fewer is not None
    assert later is not None
    assert later >= fewer


@given(pricings())
def test_it_is_paid_for_after_the_first_call_that_makes_it_worthwhile(pricing: Pricing) -> None:
    pays_after = pricing.break_even_calls

    if pays_after is None:
        assert not pricing.is_worthwhile(1_000_000)
    else:
        assert pricing.is_worthwhile(pays_after)
        assert pays_after == 0 or not pricing.is_worthwhile(pays_after - 1)


def test_what_saves_a_token_never_pays() -> None:
    # 100,000 tokens written for one that is not read: after 1.15 million calls.
    assert replace(HALVED, after=99_999, unchanged=0).break_even_calls is None


def test_amounts_are_said_as_precisely_as_they_matter() -> None:
    said = {0: "$0", 0.00001: "less than $0.0001", -0.31: "-$0.3100", 1234.5: "$1,234.50"}

    assert {amount: format_dollars(amount) for amount in said} == said


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

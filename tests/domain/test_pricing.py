"""What a compaction costs and saves: by hand, for all numbers, and in cases that others report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.models import ModelFacts, Prices
from cutbank.domain.pricing import Pricing, SummaryOrder
from cutbank.domain.pricing_text import dollars, in_words

SONNET = ModelFacts(
    "sonnet", prices=(Prices(input=3, output=15, cache_read=0.3, cache_write=3.75),)
)
OPUS = ModelFacts("opus", prices=(Prices(input=15, output=75, cache_read=1.5, cache_write=18.75),))
DEEPSEEK = ModelFacts("deepseek", prices=(Prices(input=0.27, output=1.1, cache_read=0.07),))
FREE = ModelFacts("free", prices=(Prices(0, 0, 0, 0),))

HALVED = Pricing(
    before=100_000, after=30_000, unchanged=10_000, cached=100_000, model=SONNET, expected_calls=10
)


def test_a_warm_cache_is_paid_for_once_and_then_each_call_saves() -> None:
    # Each call reads 70,000 tokens less at 0.3; the next one writes 20,000 at 3.75 instead.
    assert HALVED.saves_per_call_usd == pytest.approx(0.021)
    assert HALVED.saves_usd == pytest.approx(0.21)
    assert HALVED.breaks_cache_tokens == 20_000
    assert HALVED.breaks_cache_usd == pytest.approx(20_000 * 3.45 / 1e6)
    assert HALVED.summary_usd == 0
    assert HALVED.net_usd == pytest.approx(0.141)
    assert HALVED.pays_after == 4  # 0.069 / 0.021 = 3.3
    assert HALVED.is_worthwhile(4)
    assert not HALVED.is_worthwhile(3)


def test_the_first_call_costs_what_the_provider_will_bill() -> None:
    as_it_is = 100_000 * 0.3 / 1e6
    compacted = (10_000 * 0.3 + 20_000 * 3.75) / 1e6

    assert replace(HALVED, expected_calls=1).net_usd == pytest.approx(as_it_is - compacted)


def test_a_cold_cache_has_nothing_to_break() -> None:
    cold = replace(HALVED, cached=0)

    # The next call writes 30,000 tokens instead of 100,000, and the nine others read as much less.
    assert cold.breaks_cache_usd == 0
    assert cold.saves_usd == pytest.approx((70_000 * 3.75 + 9 * 70_000 * 0.3) / 1e6)
    assert cold.pays_after == 0


def test_what_was_not_cached_yet_would_have_been_written_anyway() -> None:
    half = replace(HALVED, cached=85_000)

    assert half.breaks_cache_tokens == 5_000
    assert half.breaks_cache_usd == pytest.approx(5_000 * 3.45 / 1e6)


def test_the_summary_is_paid_for_by_its_own_model() -> None:
    haiku = ModelFacts("haiku", prices=(Prices(1, 5, 0.1, 1.25),))
    bought = replace(HALVED, summary=SummaryOrder(haiku, input=70_000, output=2_000))

    assert bought.summary_usd == pytest.approx(0.07 + 0.01)
    assert bought.net_usd == pytest.approx(0.141 - 0.08)
    assert bought.pays_after == 8  # (0.069 + 0.08) / 0.021 = 7.1


def test_a_summary_asked_for_on_the_served_prefix_reads_it_from_the_cache() -> None:
    # As iterate/iterate#1888 measured: 0 % of it was cached before, 89.9 to 99.6 % after.
    anew = SummaryOrder(SONNET, input=100_000, output=2_000)
    on_prefix = replace(anew, cached=99_600)

    assert anew.usd == pytest.approx(0.33)
    assert on_prefix.usd == pytest.approx(0.02988 + 0.0012 + 0.03)


def test_what_was_paid_counts_and_not_what_was_reckoned() -> None:
    bought = replace(HALVED, summary=SummaryOrder(None, 1, 1), paid_usd=0.5)

    assert bought.summary_usd == 0.5
    assert bought.net_usd == pytest.approx(0.141 - 0.5)


@pytest.mark.parametrize("model", [None, ModelFacts("unheard-of")])
def test_without_prices_there_are_tokens_and_no_money(model: ModelFacts | None) -> None:
    unpriced = replace(HALVED, model=model)

    assert (unpriced.saves_tokens, unpriced.breaks_cache_tokens) == (70_000, 20_000)
    assert not unpriced.is_priced
    assert unpriced.saves_usd is None
    assert unpriced.net_usd is None
    assert unpriced.pays_after is None
    assert unpriced.is_worthwhile() is None
    assert not any("$" in line for line in in_words(unpriced))
    assert "tokens only" in in_words(unpriced)[-1]


def test_a_summary_of_unknown_price_leaves_the_outcome_open() -> None:
    bought = replace(HALVED, summary=SummaryOrder(None, 70_000, 2_000))

    assert bought.saves_usd == pytest.approx(0.21)
    assert bought.net_usd is None
    assert bought.is_worthwhile() is None
    assert "not known" in in_words(bought)[-1]


def test_what_pays_after_a_million_calls_never_pays() -> None:
    one_token_less = replace(HALVED, after=99_999, unchanged=0)

    # 100,000 tokens written anew for one that is not read: 1.15 million calls.
    assert one_token_less.pays_after is None
    assert in_words(one_token_less)[-1].startswith("it never pays for itself")


def test_leaving_the_dearer_tier_counts_as_saving() -> None:
    tiered = ModelFacts("t", prices=(*SONNET.prices, Prices(6, 22.5, 0.6, 7.5, above=200_000)))
    large = Pricing(250_000, 50_000, 0, 250_000, tiered, expected_calls=1)

    assert large.saves_per_call_usd == pytest.approx((250_000 * 0.6 - 50_000 * 0.3) / 1e6)


# What others report


def test_mutating_one_old_message_halves_the_prompt_and_nearly_doubles_its_price() -> None:
    # esengine/DeepSeek-Reasonix#238: a prompt of 4,535 tokens, 4,480 of them cached, became one of
    # 2,243, none of them cached. They put it at +90 %; by their own prices it is +84 %.
    mutated = Pricing(4_535, 2_243, 0, 4_480, DEEPSEEK, expected_calls=1)

    as_it_was = (4_480 * 0.07 + 55 * 0.27) / 1e6
    assert mutated.saves_tokens / mutated.before == pytest.approx(0.51, abs=0.005)
    assert mutated.net_usd == pytest.approx(-0.84 * as_it_was, rel=0.01)
    assert not mutated.is_worthwhile()


def test_pruning_at_every_call_never_pays() -> None:
    # What they did: another message at each call, so that each has one call to pay for itself.
    every_call = [Pricing(4_535, 2_243, 0, 4_480, DEEPSEEK, 1) for _ in range(5)]
    once = Pricing(4_535, 2_243, 0, 4_480, DEEPSEEK, 5)

    assert sum(pricing.net_usd or 0 for pricing in every_call) < 0
    assert once.pays_after == 3
    assert once.is_worthwhile()


def test_five_small_prunes_lose_where_a_single_one_pays() -> None:
    # macanderson/stella#4381: 137 K tokens were billed anew to save 4 to 8 K five times.
    small = [
        Pricing(100_000, 100_000 - saved, 100_000 - saved - 27_400, 100_000, SONNET, 20)
        for saved in (4_000, 5_000, 6_000, 7_000, 8_000)
    ]
    single = Pricing(100_000, 70_000, 70_000 - 27_400, 100_000, SONNET, 20)

    assert sum(pricing.breaks_cache_tokens for pricing in small) == 137_000
    assert [pricing.pays_after for pricing in small] == [79, 64, 53, 46, 40]
    assert not any(pricing.is_worthwhile() for pricing in small)
    assert single.pays_after == 11
    assert single.is_worthwhile()


def test_a_smaller_request_can_cost_seven_times_as_much() -> None:
    # anomalyco/opencode#32515: $0.24 became $1.83. The sizes are those that come to it on Opus 4.
    pruned = Pricing(160_000, 97_600, 0, 160_000, OPUS, expected_calls=1)

    assert pytest.approx(0.24) == 160_000 * 1.5 / 1e6
    assert pruned.net_usd == pytest.approx(0.24 - 1.83)
    assert pruned.pays_after == 18


def test_toggling_around_a_threshold_never_pays() -> None:
    # code-yeongyu/senpi#425: pruned at one call, restored at the next, again and again.
    pruned = Pricing(100_000, 60_000, 20_000, 100_000, SONNET, expected_calls=1)
    restored = Pricing(60_000, 100_000, 20_000, 60_000, SONNET, expected_calls=1)

    assert not pruned.is_worthwhile()
    assert not restored.is_worthwhile()
    assert restored.pays_after is None


# For all numbers

TOKENS = st.integers(0, 2_000_000)
DOLLARS = st.floats(0, 100, allow_subnormal=False).map(lambda price: round(price, 3))
PRICES = st.builds(
    Prices, input=DOLLARS, output=DOLLARS, cache_read=DOLLARS | st.none(), cache_write=DOLLARS
)
MODELS = PRICES.map(lambda prices: ModelFacts("any", prices=(prices,)))
ORDERS = st.none() | st.builds(
    SummaryOrder, model=MODELS, input=TOKENS, output=TOKENS, cached=TOKENS
)


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
        summary=draw(ORDERS),
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
    pays_after = pricing.pays_after

    if pays_after is None:
        assert not pricing.is_worthwhile(1_000_000)
    else:
        assert pricing.is_worthwhile(pays_after)
        assert pays_after == 0 or not pricing.is_worthwhile(pays_after - 1)


@given(pricings())
def test_where_nothing_costs_anything_nothing_is_saved(pricing: Pricing) -> None:
    free = replace(pricing, model=FREE, summary=SummaryOrder(FREE, 10_000, 500))

    assert free.saves_usd == free.breaks_cache_usd == free.summary_usd == free.net_usd == 0
    assert free.pays_after == 0


@given(pricings())
def test_where_nothing_is_cached_it_breaks_nothing_and_saves_something(pricing: Pricing) -> None:
    prices = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
    cold = replace(pricing, cached=0, model=ModelFacts("m", prices=(prices,)))

    assert cold.breaks_cache_tokens == 0
    assert cold.breaks_cache_usd == 0
    assert (cold.saves_usd or 0) >= 0


@given(pricings(), TOKENS)
def test_the_more_is_cached_the_more_it_breaks(pricing: Pricing, more: int) -> None:
    warmer = replace(pricing, cached=min(pricing.before, pricing.cached + more))
    at_fixed_prefix = replace(pricing, unchanged=0), replace(warmer, unchanged=0)

    colder, warm = (one.breaks_cache_tokens for one in at_fixed_prefix)
    assert warm >= colder


@given(pricings())
def test_no_words_are_said_of_money_that_is_not_known(pricing: Pricing) -> None:
    said = in_words(pricing)

    assert len(said) == 5
    assert all(line and "None" not in line for line in said)


# In words


def test_the_price_is_said_in_five_lines() -> None:
    assert in_words(HALVED) == (
        "sonnet, for a million tokens: $3 in, $0.3 from the cache, $3.75 into it, $15 out",
        "each prompt is 70,000 tokens smaller: $0.0210 a call, $0.2100 over 10 calls",
        "20,000 more tokens are in no cache at the next call: $0.0690",
        "the summary costs $0: no model writes it",
        "paid for after 4 calls: $0.1410 saved after 10 calls",
    )


def test_a_loss_is_said_to_be_one() -> None:
    assert in_words(replace(HALVED, expected_calls=2))[-1] == (
        "paid for only after 4 calls, and 2 calls are expected: $0.0270 lost in all"
    )
    assert in_words(replace(HALVED, after=100_000))[-1].startswith("it never pays for itself")


@pytest.mark.parametrize(
    ("amount", "said"),
    [(0, "$0"), (0.00001, "less than $0.0001"), (-0.31, "-$0.3100"), (1234.5, "$1,234.50")],
)
def test_amounts_are_said_as_precisely_as_they_matter(amount: float, said: str) -> None:
    assert dollars(amount) == said

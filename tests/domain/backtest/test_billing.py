"""What prompts cost: by hand, and for all numbers."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.domain.backtest.billing import CacheReport, PricedCall, compute_bill
from cutbank.domain.models import ModelFacts, Prices

SONNET = ModelFacts("sonnet", prices=(Prices(3, 15, cache_read=0.3, cache_write=3.75),))
OPENAI = ModelFacts("gpt", prices=(Prices(2, 8, cache_read=0.5),))
TIERED = ModelFacts("tiered", prices=(Prices(1, 10), Prices(2, 20, above=200_000)))

tokens = st.integers(0, 300_000)


@st.composite
def sessions(draw: st.DrawFn) -> list[PricedCall]:
    """Calls of which each has, at most, all of the prompt before at its beginning."""
    calls: list[PricedCall] = []
    before = 0
    for prompt in draw(st.lists(tokens, max_size=8)):
        calls.append(
            PricedCall(
                prompt=prompt,
                unchanged=draw(st.integers(0, min(prompt, before))),
                output=draw(st.integers(0, 4_000)),
                gap_s=draw(st.none() | st.floats(-1e6, 1e6)),
                summary_input=draw(st.sampled_from((0, 0, 20_000))),
                summary_output=draw(st.sampled_from((0, 0, 2_000))),
            )
        )
        before = prompt
    return calls


GROWING = [
    PricedCall(prompt=10_000, output=500),
    PricedCall(prompt=12_000, unchanged=10_000, output=500, gap_s=20),
    PricedCall(prompt=15_000, unchanged=12_000, output=1_000, gap_s=20),
]


def test_what_stayed_as_it_was_is_read_and_the_rest_is_written() -> None:
    bill = compute_bill(GROWING, SONNET)

    assert (bill.prompt_tokens, bill.hit_tokens, bill.written_tokens) == (37_000, 22_000, 15_000)
    assert bill.prompt_usd == pytest.approx((22_000 * 0.3 + 15_000 * 3.75) / 1e6)
    assert bill.uncached_usd == pytest.approx(37_000 * 3 / 1e6)
    assert bill.output_usd == pytest.approx(2_000 * 15 / 1e6)
    assert bill.usd == pytest.approx((22_000 * 0.3 + 15_000 * 3.75 + 2_000 * 15) / 1e6)


LATE = replace(GROWING[2], gap_s=301)
BOUNDARY = PricedCall(prompt=6_000, unchanged=2_000, gap_s=20)
# A trim near the beginning: 13,000 of the 15,000 tokens in the cache are lost, 1,000 are new.
TRIMMED = PricedCall(prompt=16_000, unchanged=2_000, gap_s=20)


@pytest.mark.parametrize(
    ("calls", "hit", "written", "rewritten"),
    [
        (GROWING, 22_000, 15_000, 0),
        ([*GROWING, BOUNDARY], 24_000, 15_000 + 4_000, 4_000),
        ([*GROWING, TRIMMED], 24_000, 15_000 + 14_000, 13_000),
        # A cache that has run out holds nothing, and no boundary is to blame.
        (
            [*GROWING[:2], LATE, replace(BOUNDARY, gap_s=400)],
            10_000,
            10_000 + 2_000 + 15_000 + 6_000,
            0,
        ),
    ],
)
def test_behind_a_boundary_all_is_written_again_that_was_in_the_cache(
    calls: list[PricedCall], hit: int, written: int, rewritten: int
) -> None:
    bill = compute_bill(calls, SONNET)

    assert (bill.hit_tokens, bill.written_tokens) == (hit, written)
    assert bill.rewritten_tokens == rewritten


def test_a_cache_does_what_was_reported_of_it_whatever_the_pause() -> None:
    # 5,000 of the 10,000 that had not changed were read; of the rest three quarters were written.
    report = CacheReport(unchanged=10_000, read=5_000, written=6_000, plain=2_000)
    as_recorded = PricedCall(prompt=13_000, unchanged=10_000, gap_s=900, cache=report)
    smaller = replace(as_recorded, prompt=6_000, unchanged=2_000)

    recorded, other = compute_bill([as_recorded], SONNET), compute_bill([smaller], SONNET)

    assert recorded.prompt_usd == pytest.approx((5_000 * 0.3 + 6_000 * 3.75 + 2_000 * 3) / 1e6)
    assert other.hit_tokens == 1_000
    assert other.prompt_usd == pytest.approx((1_000 * 0.3 + 3_750 * 3.75 + 1_250 * 3) / 1e6)
    # What the cache held of other sessions it holds here too.
    elsewhere = CacheReport(unchanged=0, read=4_000, written=6_000, plain=0)
    shared = compute_bill([PricedCall(prompt=9_000, cache=elsewhere)], SONNET)
    assert (shared.hit_tokens, shared.written_tokens) == (4_000, 5_000)


def test_what_is_kept_for_an_hour_costs_what_an_hour_costs() -> None:
    model = ModelFacts("m", prices=(Prices(3, 15, 0.3, 3.75, cache_write_1h=6),))
    report = CacheReport(unchanged=0, read=0, written=8_000, plain=2_000, written_1h=6_000)

    bill = compute_bill([PricedCall(prompt=10_000, cache=report)], model)

    assert bill.prompt_usd == pytest.approx((6_000 * 6 + 2_000 * 3.75 + 2_000 * 3) / 1e6)


def test_each_call_has_the_prices_of_its_own_model() -> None:
    calls = [PricedCall(prompt=1_000), PricedCall(prompt=1_000, model="gpt")]

    bill = compute_bill(calls, SONNET, others={"gpt": OPENAI})

    assert bill.uncached_usd == pytest.approx((1_000 * 3 + 1_000 * 2) / 1e6)
    assert compute_bill(calls, SONNET, others={"gpt": None}).usd is None


def test_all_of_a_large_prompt_pays_the_price_of_its_size() -> None:
    calls = [PricedCall(prompt=200_000, output=100), PricedCall(prompt=200_001, output=100)]

    bill = compute_bill(calls, TIERED)

    assert bill.prompt_usd == pytest.approx((200_000 * 1 + 200_001 * 2) / 1e6)
    assert bill.output_usd == pytest.approx((100 * 10 + 100 * 20) / 1e6)


def test_summaries_cost_what_their_own_model_takes() -> None:
    bought = PricedCall(prompt=1_000, summary_input=30_000, summary_output=2_000)

    by_own = compute_bill([bought], SONNET)
    by_other = compute_bill([bought], SONNET, OPENAI)

    assert by_own.summaries_usd == pytest.approx((30_000 * 3 + 2_000 * 15) / 1e6)
    assert by_other.summaries_usd == pytest.approx((30_000 * 2 + 2_000 * 8) / 1e6)
    assert by_other.prompt_usd == by_own.prompt_usd


def test_a_price_that_is_not_known_is_never_nothing() -> None:
    bought = PricedCall(prompt=1_000, summary_input=30_000, summary_output=2_000)

    for facts in (None, ModelFacts("unheard-of")):
        bill = compute_bill([bought], facts)

        assert bill.prompt_usd is bill.uncached_usd is bill.output_usd is None
        assert bill.summaries_usd is bill.usd is None
        assert bill.prompt_tokens == 1_000
    assert compute_bill([bought], SONNET, ModelFacts("unheard-of")).usd is None


@given(sessions(), st.none() | st.floats(0, 1e6))
def test_each_token_of_a_prompt_is_read_or_written(
    calls: list[PricedCall], cache_s: float | None
) -> None:
    bill = compute_bill(calls, SONNET, cache_s=cache_s)

    assert bill.hit_tokens + bill.written_tokens == bill.prompt_tokens
    assert bill.prompt_tokens == sum(call.prompt for call in calls)
    assert 0 <= bill.rewritten_tokens <= bill.written_tokens
    assert bill.hit_tokens >= 0


@given(sessions())
def test_a_cache_whose_writing_is_not_dearer_never_costs_more(calls: list[PricedCall]) -> None:
    bill = compute_bill(calls, OPENAI)

    assert bill.prompt_usd is not None
    assert bill.uncached_usd is not None
    assert bill.prompt_usd <= bill.uncached_usd + 1e-9


def test_a_cache_lasts_as_long_as_is_set_and_is_warm_where_no_time_is_known() -> None:
    def hits(gap: float | None, **cache_s: Any) -> int:
        calls = [GROWING[0], replace(GROWING[1], gap_s=gap)]
        return compute_bill(calls, SONNET, **cache_s).hit_tokens

    assert hits(3_000.0) == 0
    assert hits(3_000.0, cache_s=3_000) == 10_000
    assert hits(3_000.0, cache_s=3_600) == hits(3_000.0, cache_s=None) == 10_000
    assert hits(None) == hits(-5_000.0) == 10_000  # a clock may go back

"""What is known of a model, and what its tokens cost."""

import pytest

from cutbank import ModelFacts, ModelOverride, Prices, Usage

SONNET = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
MODEL = ModelFacts("m", context=200_000, output=64_000, prices=(SONNET,))
TIERED = ModelFacts(
    "t", prices=(SONNET, Prices(input=6, output=22.5, cache_read=0.6, cache_write=7.5, above=200))
)


def test_each_kind_of_token_is_paid_at_its_own_price() -> None:
    usage = Usage(input=1_000, cache_read=100_000, cache_write=10_000, output=2_000)

    # 0.003 + 0.03 + 0.0375 + 0.03
    assert MODEL.compute_cost(usage) == pytest.approx(0.1005)
    plain = ModelFacts("m", prices=(Prices(input=2, output=8),))
    assert plain.compute_cost(Usage(input=0, cache_read=1_000_000, output=0)) == 2
    assert plain.compute_cost(Usage(input=0, cache_write=1_000_000, output=0)) == 2


def test_what_somebody_knows_better_replaces_only_what_was_said() -> None:
    better = MODEL.apply_override(ModelOverride(context=1_000_000, input_usd=1))

    assert (better.context, better.output) == (1_000_000, 64_000)
    assert better.prices == (Prices(1, 15, 0.3, 3.75),)
    # A price of one's own holds for prompts of any size.
    tiered = TIERED.apply_override(ModelOverride(input_usd=1, cache_read_usd=0))
    assert tiered.prices == (Prices(1, 15, 0, 3.75),)


def test_a_larger_window_keeps_what_is_reserved_for_the_answer() -> None:
    reserving = ModelFacts("m", context=400_000, prompt=272_000, output=128_000)

    assert reserving.apply_override(ModelOverride(context=1_000_000)).prompt == 872_000
    assert reserving.apply_override(ModelOverride(output=64_000)).prompt == 272_000


def test_half_a_price_is_none() -> None:
    unknown = ModelFacts("local")

    assert unknown.apply_override(ModelOverride(input_usd=1)).prices == ()
    assert unknown.apply_override(ModelOverride(input_usd=0, output_usd=0)).prices == (
        Prices(0, 0),
    )
    assert unknown.apply_override(ModelOverride(context=8_192)) == ModelFacts(
        "local", context=8_192, prompt=8_192, is_context_set=True
    )


def test_a_prompt_past_a_threshold_pays_more_for_all_of_its_tokens_cached_ones_too() -> None:
    at, past = Usage(input=200, output=1), Usage(input=201, output=1)
    cached = Usage(input=1, cache_read=200, output=0)

    assert TIERED.compute_cost(at) == pytest.approx((200 * 3 + 15) / 1e6)
    assert TIERED.compute_cost(past) == pytest.approx((201 * 6 + 22.5) / 1e6)
    assert TIERED.compute_cost(cached) == pytest.approx((6 + 200 * 0.6) / 1e6)


def test_what_is_not_known_in_full_has_no_price() -> None:
    assert [MODEL.compute_cost(usage) for usage in (Usage(), Usage(input=5), Usage(output=5))] == [
        None
    ] * 3
    assert ModelFacts("m").compute_cost(Usage(input=1, output=1)) is None
    assert ModelFacts("m").find_prices(10) is None

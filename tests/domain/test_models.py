"""What is known of a model, and what its tokens cost."""

import pytest

from cutbank.domain.models import ModelFacts, ModelOverride, Prices
from cutbank.domain.session_events import Usage

SONNET = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75)
MODEL = ModelFacts("m", context=200_000, output=64_000, prices=(SONNET,))
TIERED = ModelFacts(
    "t", prices=(SONNET, Prices(input=6, output=22.5, cache_read=0.6, cache_write=7.5, above=200))
)


def test_each_kind_of_token_is_paid_at_its_own_price() -> None:
    usage = Usage(input=1_000, cache_read=100_000, cache_write=10_000, output=2_000)

    # 0.003 + 0.03 + 0.0375 + 0.03
    assert MODEL.cost(usage) == pytest.approx(0.1005)


def test_what_is_not_cheaper_for_being_cached_costs_what_input_costs() -> None:
    model = ModelFacts("m", prices=(Prices(input=2, output=8),))

    assert model.cost(Usage(input=0, cache_read=1_000_000, output=0)) == 2
    assert model.cost(Usage(input=0, cache_write=1_000_000, output=0)) == 2


def test_a_prompt_past_a_threshold_pays_more_for_all_of_its_tokens() -> None:
    at, past = Usage(input=200, output=1), Usage(input=201, output=1)

    assert TIERED.cost(at) == pytest.approx((200 * 3 + 15) / 1e6)
    assert TIERED.cost(past) == pytest.approx((201 * 6 + 22.5) / 1e6)


def test_what_the_cache_holds_counts_for_the_size_of_a_prompt() -> None:
    usage = Usage(input=1, cache_read=200, output=0)

    assert TIERED.cost(usage) == pytest.approx((6 + 200 * 0.6) / 1e6)


@pytest.mark.parametrize("usage", [Usage(), Usage(input=5), Usage(output=5)])
def test_a_call_that_was_not_reported_in_full_has_no_price(usage: Usage) -> None:
    assert MODEL.cost(usage) is None


def test_a_model_without_prices_has_no_costs() -> None:
    assert ModelFacts("m").cost(Usage(input=1, output=1)) is None
    assert ModelFacts("m").prices_for(10) is None


def test_what_somebody_knows_better_replaces_only_what_was_said() -> None:
    better = MODEL.overridden(ModelOverride(context=1_000_000, input_usd=1))

    assert (better.context, better.output) == (1_000_000, 64_000)
    assert better.prices == (Prices(1, 15, 0.3, 3.75),)


def test_a_price_of_ones_own_holds_for_prompts_of_any_size() -> None:
    better = TIERED.overridden(ModelOverride(input_usd=1, cache_read_usd=0))

    assert better.prices == (Prices(1, 15, 0, 3.75),)


def test_a_larger_window_keeps_what_is_reserved_for_the_answer() -> None:
    reserving = ModelFacts("m", context=400_000, prompt=272_000, output=128_000)

    assert reserving.overridden(ModelOverride(context=1_000_000)).prompt == 872_000
    assert reserving.overridden(ModelOverride(output=64_000)).prompt == 272_000


def test_half_a_price_is_none() -> None:
    unknown = ModelFacts("local")

    assert unknown.overridden(ModelOverride(input_usd=1)).prices == ()
    assert unknown.overridden(ModelOverride(input_usd=0, output_usd=0)).prices == (Prices(0, 0),)
    assert unknown.overridden(ModelOverride(context=8_192)) == ModelFacts(
        "local", context=8_192, prompt=8_192, is_context_set=True
    )

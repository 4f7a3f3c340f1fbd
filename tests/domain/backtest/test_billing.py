"""What prompts cost: by hand, and for all numbers."""

from dataclasses import replace
from typing import Any

import pytest

from cutbank.domain.billing import CacheReport, PricedCall, compute_bill
from cutbank.domain.models import ModelFacts, Prices

SONNET = ModelFacts("sonnet", prices=(Prices(3, 15, cache_read=0.3, cache_write=3.75),))
OPENAI = ModelFacts("gpt", prices=(Prices(2, 8, cache_read=0.5),))
TIERED = ModelFacts("tiered", prices=(Prices(1, 10), Prices(2, 20, above=200_000)))

GROWING = [
    PricedCall(prompt=10_000, output=500),
    PricedCall(prompt=12_000, unchanged=10_000, output=500, gap_s=20),
    PricedCall(prompt=15_000, unchanged=12_000, output=1_000, gap_s=20),
]


def dollars(*bought: tuple[float, float]) -> Any:
    """The price of so many tokens, each at so many dollars a million."""
    return pytest.approx(sum(tokens * price for tokens, price in bought) / 1e6)


def after(gap_s: float | None) -> list[PricedCall]:
    return [GROWING[0], replace(GROWING[1], gap_s=gap_s)]


BOUNDARY = PricedCall(prompt=6_000, unchanged=2_000, gap_s=20)
# A trim near the beginning: 13,000 of the 15,000 tokens in the cache are lost, 1,000 are new.
TRIM = PricedCall(prompt=16_000, unchanged=2_000, gap_s=20)
LATE = [*GROWING[:2], replace(GROWING[2], gap_s=301), replace(BOUNDARY, gap_s=400)]
# 5,000 of the 10,000 that had not changed were read; of the rest three quarters were written.
REPORT = CacheReport(unchanged=10_000, read=5_000, written=6_000, plain=2_000)
ELSEWHERE = CacheReport(unchanged=0, read=4_000, written=6_000, plain=0)
FOR_AN_HOUR = CacheReport(unchanged=0, read=0, written=8_000, plain=2_000, written_1h=6_000)
BOUGHT = PricedCall(prompt=1_000, summary_input=30_000, summary_output=2_000)
MIXED = [PricedCall(prompt=1_000), PricedCall(prompt=1_000, model="gpt")]

BILLS: dict[str, tuple[list[PricedCall], ModelFacts, dict[str, Any]]] = {
    "what stayed as it was is read, and the rest is written": (
        GROWING,
        SONNET,
        {
            "prompt_tokens": 37_000,
            "hit_tokens": 22_000,
            "written_tokens": 15_000,
            "rewritten_tokens": 0,
            "prompt_usd": dollars((22_000, 0.3), (15_000, 3.75)),
            "uncached_usd": dollars((37_000, 3)),
            "output_usd": dollars((2_000, 15)),
            "usd": dollars((22_000, 0.3), (15_000, 3.75), (2_000, 15)),
        },
    ),
    "behind a boundary all is written again that was in the cache": (
        [*GROWING, BOUNDARY],
        SONNET,
        {"rewritten_tokens": 4_000, "written_tokens": 19_000},
    ),
    "and where a result was shortened": ([*GROWING, TRIM], SONNET, {"rewritten_tokens": 13_000}),
    "a cache that has run out holds nothing, and no boundary is to blame": (
        LATE,
        SONNET,
        {"hit_tokens": 10_000, "written_tokens": 33_000, "rewritten_tokens": 0},
    ),
    "without a time it is warm": (after(None), SONNET, {"hit_tokens": 10_000}),
    "and where a clock was set back": (after(-5_000.0), SONNET, {"hit_tokens": 10_000}),
    "a cache does what was reported of it whatever the pause": (
        [PricedCall(prompt=13_000, unchanged=10_000, gap_s=900, cache=REPORT)],
        SONNET,
        {"prompt_usd": dollars((5_000, 0.3), (6_000, 3.75), (2_000, 3))},
    ),
    "in proportion, where the prompt is smaller": (
        [PricedCall(prompt=6_000, unchanged=2_000, gap_s=900, cache=REPORT)],
        SONNET,
        {"hit_tokens": 1_000, "prompt_usd": dollars((1_000, 0.3), (3_750, 3.75), (1_250, 3))},
    ),
    "what it held of other sessions it holds here too": (
        [PricedCall(prompt=9_000, cache=ELSEWHERE)],
        SONNET,
        {"hit_tokens": 4_000, "written_tokens": 5_000},
    ),
    "but no more than the prompt has": (
        [PricedCall(prompt=1_000, cache=ELSEWHERE)],
        SONNET,
        {"hit_tokens": 1_000, "written_tokens": 0},
    ),
    "what is kept for an hour costs what an hour costs": (
        [PricedCall(prompt=10_000, cache=FOR_AN_HOUR)],
        ModelFacts("m", prices=(Prices(3, 15, 0.3, 3.75, cache_write_1h=6),)),
        {"prompt_usd": dollars((6_000, 6), (2_000, 3.75), (2_000, 3))},
    ),
    "each call has the prices of its own model": (
        MIXED,
        SONNET,
        {"uncached_usd": dollars((1_000, 3), (1_000, 2))},
    ),
    "all of a large prompt pays the price of its size": (
        [PricedCall(prompt=200_000, output=100), PricedCall(prompt=200_001, output=100)],
        TIERED,
        {
            "prompt_usd": dollars((200_000, 1), (200_001, 2)),
            "output_usd": dollars((100, 10), (100, 20)),
        },
    ),
    "summaries cost what the model takes": (
        [BOUGHT],
        SONNET,
        {"summaries_usd": dollars((30_000, 3), (2_000, 15))},
    ),
}


@pytest.mark.parametrize(("calls", "facts", "expected"), BILLS.values(), ids=BILLS)
def test_what_calls_cost(
    calls: list[PricedCall], facts: ModelFacts, expected: dict[str, Any]
) -> None:
    bill = compute_bill(calls, facts, others={"gpt": OPENAI})

    assert {name: getattr(bill, name) for name in expected} == expected


def test_a_price_that_is_not_known_is_never_nothing() -> None:
    for facts in (None, ModelFacts("unheard-of")):
        bill = compute_bill([BOUGHT], facts)

        assert bill.prompt_usd is bill.uncached_usd is bill.output_usd is None
        assert bill.summaries_usd is bill.usd is None
        assert bill.prompt_tokens == 1_000
    assert compute_bill(MIXED, SONNET, others={"gpt": None}).usd is None
    assert compute_bill([PricedCall(prompt=0, output=9)], None).usd is None

"""Figures, differences and commands in words."""

import shlex
from dataclasses import replace
from itertools import pairwise

from backtests import cell, measured, setup, told_apart
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.analysis.backtest.backtest_text import (
    apart,
    command_of,
    differences_told,
    mean_apart,
    part,
    recall_of,
)
from cutbank.adapters.analysis.backtest.grid import Grid
from cutbank.domain.backtest.comparison import Difference, Measure
from cutbank.domain.backtest.result import Measured

FOUND = Difference(
    measure=Measure.COST,
    setup=setup("pi"),
    against=setup("none"),
    sessions=9,
    micro=-0.554,
    interval=(-0.6, -0.032),
    macro=0.5,
    macro_interval=None,
    macro_sessions=9,
)


def test_an_amount_differs_by_a_part_and_a_ratio_by_points() -> None:
    assert apart(FOUND) == "-55% [-60%, -3.2%]"
    assert apart(replace(FOUND, measure=Measure.F3)) == "-0.55 [-0.60, -0.03]"
    assert mean_apart(FOUND) == "+50%"


def test_what_is_not_known_is_a_dash() -> None:
    assert part(None) == "-"
    assert apart(replace(FOUND, micro=None)) == "-"
    assert mean_apart(replace(FOUND, macro=None)) == "-"


def test_the_command_names_all_that_was_tried() -> None:
    words = shlex.split(command_of(told_apart()))

    assert words == [
        *("cutbank", "backtest", "all", "--policies", "none,pi,rolling-timeline"),
        *("--limits", "16000,32000", "--budgets", "500,2000"),
        *("--set", 'rolling-timeline.keep=[1, "a"]'),
    ]


def test_the_command_names_who_wrote_and_whose_prices_were_taken() -> None:
    found = measured(
        cell("a", setup("pi@as_shipped", summariser="llm", model="m", settings={"x": 1})),
        cell("a", setup("pi@as_shipped", summariser="llm", model="m", settings={"x": 2})),
    )

    assert shlex.split(command_of(found))[3:] == [
        *("--policies", "pi@as_shipped", "--limits", "16000", "--set", "pi.x=1,2"),
        *("--summariser", "llm", "--model", "m"),
    ]


def test_who_writes_no_summaries_asks_for_no_budget_in_the_command() -> None:
    sized = setup("pi", summariser="sized", budget=800)

    words = shlex.split(command_of(measured(cell("a", sized), cell("a", setup("none")))))

    assert words[words.index("--budgets") + 1] == "800"


def test_what_texts_keep_is_told_apart_among_those_that_have_texts() -> None:
    texts = [setup("pi", budget=budget) for budget in (500, 800)]
    sized = setup("pi", summariser="sized", budget=800)
    sessions = "abcdefgh"

    found = differences_told(measured(*(cell(s, one) for s in sessions for one in (*texts, sized))))

    told = {one.measure for one in found if one.setup == sized}
    assert told
    assert all(measure.is_amount for measure in told)
    assert {one.measure for one in found if one.setup == texts[1]} == set(Measure)


def test_the_command_says_what_was_named() -> None:
    found = measured(cell("a", setup("pi")), cell("a", setup("pi", budget=500)))

    assert shlex.split(command_of(found, "my talks", "other"))[:5] == [
        *("cutbank", "--namespace", "other", "backtest", "my talks"),
    ]
    assert "--budgets default,500" in command_of(found)


@given(
    policies=st.lists(st.sampled_from(("none", "pi", "recorded")), min_size=1, unique=True),
    limits=st.lists(st.integers(1, 10**6), min_size=1, max_size=3, unique=True),
    budgets=st.lists(st.none() | st.integers(1, 10**4), min_size=1, max_size=3, unique=True),
)
def test_the_command_makes_the_same_setups(
    policies: list[str], limits: list[int], budgets: list[int | None]
) -> None:
    asked = Grid(policies, limits, {"keep_tokens": [5]} if "pi" in policies else {}, budgets)

    words = shlex.split(command_of(Measured(setups=asked.setups(), cells=())))

    given_to = dict(pairwise(words))
    key, _, value = given_to.get("--set", "=").partition("=")
    again = Grid(
        given_to["--policies"].split(","),
        [int(word) for word in given_to["--limits"].split(",")],
        {key: [value]} if key else {},
        [
            None if word == "default" else int(word)
            for word in given_to.get("--budgets", "default").split(",")
        ],
    )
    assert again.setups() == asked.setups()


def test_what_was_lost_is_recalled_where_its_session_is() -> None:
    assert recall_of(cell("a b", setup()), 12) == "cutbank recall 'a b' '#12'"
    elsewhere = cell("a", setup(), namespace="other")
    assert recall_of(elsewhere, 3) == "cutbank --namespace other recall a '#3'"

"""Figures, differences and commands in words."""

import shlex
from itertools import pairwise

from backtests import cell, measured, setup
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.analysis.backtest.backtest_text import (
    make_backtest_command,
    make_recall_command,
    select_differences,
)
from cutbank.adapters.analysis.backtest.grid import Grid
from cutbank.domain.backtest.cell import BacktestResult
from cutbank.domain.backtest.comparison import Metric


def test_what_texts_keep_is_told_apart_among_those_that_have_texts() -> None:
    texts = [setup("pi", budget=budget) for budget in (500, 800)]
    sized = setup("pi", summarizer="sized", budget=800)
    sessions = "abcdefgh"

    found = select_differences(
        measured(*(cell(s, one) for s in sessions for one in (*texts, sized)))
    )

    told = {one.metric for one in found if one.setup == sized}
    assert told
    assert all(measure.is_amount for measure in told)
    assert {one.metric for one in found if one.setup == texts[1]} == set(Metric)


@given(
    policies=st.lists(st.sampled_from(("none", "pi", "recorded")), min_size=1, unique=True),
    limits=st.lists(st.integers(1, 10**6), min_size=1, max_size=3, unique=True),
    budgets=st.lists(st.none() | st.integers(1, 10**4), min_size=1, max_size=3, unique=True),
)
def test_the_command_makes_the_same_setups(
    policies: list[str], limits: list[int], budgets: list[int | None]
) -> None:
    asked = Grid(policies, limits, {"keep_tokens": [5]} if "pi" in policies else {}, budgets)

    words = shlex.split(make_backtest_command(BacktestResult(setups=asked.make_setups(), cells=())))

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
    assert again.make_setups() == asked.make_setups()


def test_what_was_lost_is_recalled_where_its_session_is() -> None:
    assert make_recall_command(cell("a b", setup()), 12) == "cutbank recall 'a b' '#12'"
    elsewhere = cell("a", setup(), namespace="other")
    assert make_recall_command(elsewhere, 3) == "cutbank --namespace other recall a '#3'"

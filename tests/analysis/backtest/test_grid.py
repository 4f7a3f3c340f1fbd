"""A backtest measures each setup that was requested once, and describes it in words."""

from itertools import product
from typing import Any

import pytest
from backtests import cell, setup
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.analysis.backtest.backtest_tables import (
    make_recall_command,
)
from cutbank.adapters.analysis.backtest.grid import FIXED_DECIDERS, Grid
from cutbank.domain.errors import InvalidSettingError

NAMES = st.sampled_from(("none", "recorded", "pi", "preserve-zone", "kdcube", "qbit@as_shipped"))
TOKENS = st.integers(1, 100_000)


@given(
    policies=st.lists(NAMES, min_size=1),
    limits=st.lists(TOKENS, min_size=1, max_size=4),
    budgets=st.lists(st.none() | TOKENS, min_size=1, max_size=3),
)
def test_all_that_was_asked_for_is_there_once(
    policies: list[str], limits: list[int], budgets: list[int | None]
) -> None:
    setups = Grid(policies, limits, budgets=budgets).make_setups()

    said = [(one.policy, one.limit, one.budget) for one in setups]
    assert len(said) == len(set(said))
    assert set(said) == {
        (policy, limit, None if policy in FIXED_DECIDERS else budget)
        for policy, limit, budget in product(policies, limits, budgets)
    }


def test_a_setting_goes_to_the_policies_that_have_it_or_to_the_one_that_is_named() -> None:
    grid = Grid(
        ("none", "pi", "preserve-zone", "reserve-headroom"),
        settings={"keep_tokens": ["8000", "16000"], "pi.keep_tokens": [4000]},
    )

    settings: dict[str, list[Any]] = {}
    for one in grid.make_setups():
        settings.setdefault(one.policy, []).append(one.settings)

    assert settings["none"] == settings["preserve-zone"] == [{}]
    assert settings["pi"] == [{"keep_tokens": 4000}]
    assert settings["reserve-headroom"] == [{"keep_tokens": 8000}, {"keep_tokens": 16000}]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"policies": []}, "needs policies"),
        ({"policies": ["silt"]}, "there is no policy 'silt'"),
        ({"policies": ["pi@silt"]}, "has no preset @silt"),
        ({"limits": []}, "needs a limit"),
        ({"limits": [0]}, "a limit is 1 token or more, not 0"),
        ({"limits": [-4]}, "not -4"),
        ({"budgets": [0]}, "a budget is 1 token or more"),
        ({"summarizer": "poet"}, "no summarizer 'poet'"),
        ({"settings": {"silt": [1]}}, "no policy of this backtest has a setting 'silt'"),
        ({"settings": {"pi.silt": [1]}}, "no policy of this backtest has a setting 'pi.silt'"),
        ({"settings": {"qbit.keep": [1]}}, "has a setting 'qbit.keep'"),
        ({"settings": {"keep_tokens": []}}, "has no value to try"),
        ({"settings": {"keep_tokens": [1_000, "silt"]}}, "keep_tokens cannot be 'silt'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSettingError, match=why) as refused:
        Grid(**{"policies": ["pi"], **asked})

    assert "\n" not in str(refused.value)


def test_what_was_lost_is_recalled_where_its_session_is() -> None:
    assert make_recall_command(cell("a b", setup()), 12) == "cutbank recall 'a b' '#12'"
    elsewhere = cell("a", setup(), namespace="other")
    assert make_recall_command(elsewhere, 3) == "cutbank --namespace other recall a '#3'"

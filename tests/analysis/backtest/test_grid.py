"""The setups of a backtest are all that was asked for, each once, and nothing that cannot be."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutbank.adapters.analysis.backtest.grid import FIXED_DECIDERS, Grid
from cutbank.adapters.settings.policy_catalog import get_policy
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

    said = [(setup.policy, setup.limit, setup.budget) for setup in setups]
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
    for setup in grid.make_setups():
        settings.setdefault(setup.policy, []).append(setup.settings)

    assert settings["none"] == settings["preserve-zone"] == [{}]
    assert settings["pi"] == [{"keep_tokens": 4000}]
    assert settings["reserve-headroom"] == [{"keep_tokens": 8000}, {"keep_tokens": 16000}]


def test_a_setup_makes_the_policy_that_it_names() -> None:
    (setup,) = Grid(["klaude-code@as_shipped"], settings={"keep_tokens": ["900"]}).make_setups()

    policy = get_policy(setup.policy, **setup.settings)

    assert policy == get_policy("klaude-code@as_shipped", keep_tokens=900)


def test_what_cannot_be_is_refused_in_one_line(subtests: pytest.Subtests) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"policies": []}, "needs policies"),
        ({"policies": ["silt"]}, "there is no policy 'silt'"),
        ({"policies": ["pi@silt"]}, "has no preset @silt"),
        ({"limits": []}, "needs a limit"),
        ({"limits": [2**53 + 1]}, "a limit is 9,007,199,254,740,992 tokens at most"),
        ({"limits": [0]}, "a limit is 1 token or more, not 0"),
        ({"limits": [-4]}, "not -4"),
        ({"budgets": [0]}, "a budget is 1 token or more"),
        ({"summarizer": "poet"}, "there is no summarizer 'poet'"),
        ({"settings": {"silt": [1]}}, "no policy of this backtest has a setting 'silt'"),
        ({"settings": {"pi.silt": [1]}}, "no policy of this backtest has a setting 'pi.silt'"),
        ({"settings": {"qbit.keep": [1]}}, "qbit is not in this backtest"),
        ({"settings": {"keep_tokens": []}}, "has no value to try"),
        ({"settings": {"keep_tokens": [1_000, "silt"]}}, "keep_tokens cannot be 'silt'"),
    ]
    for asked, why in rows:
        with subtests.test(str(asked)), pytest.raises(InvalidSettingError, match=why) as refused:
            Grid(**{"policies": ["pi"], **asked})

        assert "\n" not in str(refused.value), asked

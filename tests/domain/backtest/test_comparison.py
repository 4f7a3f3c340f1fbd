"""What may be concluded from two setups over the same sessions."""

from math import inf, sqrt
from statistics import NormalDist

import pytest
from backtests import bill, cell, measured, scores, setup, some_measured, told_apart
from hypothesis import given, settings

from cutbank.domain.backtest_cell import BacktestResult, Cell, CellOutcome
from cutbank.domain.backtest_comparison import (
    MIN_SESSIONS,
    ComparisonVerdict,
    Metric,
    _compute_tail_share,
    compare_cells,
    compare_setups,
)

ONE, OTHER = setup("one"), setup("other")
BETTER, WORSE, CANNOT_TELL = ComparisonVerdict


def recalls(*hits: int, stakes: int = 10, policy: str = "one") -> list[Cell]:
    return [
        cell(f"s{number}", setup(policy), canonical=scores(stakes, hit))
        for number, hit in enumerate(hits)
    ]


def costs(*dollars: float | None, policy: str = "one") -> list[Cell]:
    return [
        cell(f"s{number}", setup(policy), bill=bill(usd=usd)) for number, usd in enumerate(dollars)
    ]


def test_what_keeps_more_or_costs_less_in_each_session_is_better() -> None:
    ours, theirs = recalls(8, 7, 9, 8, 7, 8), recalls(3, 2, 3, 4, 3, 2, policy="other")
    dear, cheap = costs(2.0, 3.0, 2.0, 2.5, 4.0, 2.0), costs(*[1.0] * 6, policy="other")

    recall = compare_cells(Metric.RECALL, ours, theirs)
    cost = compare_cells(Metric.COST, dear, cheap)

    assert recall.overall == pytest.approx((47 - 17) / 60)
    assert cost.overall == pytest.approx(15.5 / 6 - 1)
    assert (recall.verdict, cost.verdict) == (BETTER, WORSE)
    assert compare_cells(Metric.RECALL, theirs, ours).verdict is WORSE
    assert compare_cells(Metric.COST, cheap, dear).verdict is BETTER


def test_no_winner_is_named_inside_the_noise() -> None:
    ours, theirs = recalls(9, 1, 8, 2, 9, 1, 8, 3), recalls(1, 9, 2, 8, 2, 8, 1, 9, policy="other")

    found = compare_cells(Metric.RECALL, ours, theirs)
    equal = compare_cells(Metric.F3, recalls(*[5] * 9), recalls(*[5] * 9, policy="other"))

    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]
    assert (equal.overall, equal.interval) == (0, (0, 0))
    assert found.verdict is equal.verdict is CANNOT_TELL


@pytest.mark.parametrize("sessions", range(1, MIN_SESSIONS + 1))
def test_too_few_sessions_name_no_winner_however_clear(sessions: int) -> None:
    ours, theirs = recalls(*[10] * sessions), recalls(*[0] * sessions, policy="other")

    verdict = compare_cells(Metric.RECALL, ours, theirs).verdict

    assert verdict is (BETTER if sessions == MIN_SESSIONS else CANNOT_TELL)


def test_only_sessions_with_something_at_stake_bear_on_a_ratio() -> None:
    ours, theirs = recalls(4, 4, 4, stakes=4), recalls(0, 0, 0, stakes=4, policy="other")
    for name, stakes, (hits, its) in (("large", 5, (5, 4)), ("quiet", 0, (0, 0))):
        ours.append(cell(name, ONE, canonical=scores(stakes, hits)))
        theirs.append(cell(name, OTHER, canonical=scores(stakes, its)))

    found = compare_cells(Metric.RECALL, ours, theirs)

    assert found.sessions == 4
    assert found.overall == pytest.approx(13 / 17)
    assert compare_cells(Metric.TOKENS, ours, theirs).sessions == 5


def test_what_has_no_known_price_is_left_out_and_never_free() -> None:
    found = compare_cells(Metric.COST, costs(2.0, None, 2.0), costs(1.0, 1.0, None, policy="other"))
    free = compare_cells(Metric.COST, costs(2.0, 1.0), costs(0.0, 0.0, policy="other"))

    assert (found.sessions, found.overall) == (1, 1.0)
    assert (free.overall, free.interval) == (None, None)


def test_resamples_in_which_the_other_has_nothing_count_as_any_other() -> None:
    # One session alone speaks against the first setup's, and is missing in a third of resamples.
    ours = [cell(f"s{number}", ONE, refused=1) for number in range(9)]
    theirs = [cell(f"s{number}", OTHER, refused=100 * (number == 0)) for number in range(9)]

    found = compare_cells(Metric.REFUSED, ours, theirs)

    assert found.overall == pytest.approx(-0.91)
    assert found.interval is not None
    assert found.interval[1] == inf
    assert found.verdict is CANNOT_TELL


def test_a_known_case_of_f3() -> None:
    kept, lost = (scores(10, 5, context_hits=n, pairs=20, pair_hits=5) for n in (4, 0))

    found = compare_cells(
        Metric.F3, [cell("a", ONE, canonical=kept)], [cell("a", OTHER, canonical=lost)]
    )

    assert found.overall == pytest.approx(3 / (1 / 0.5 + 1 / 0.4 + 1 / 0.25))


def test_each_setup_is_compared_with_the_first_of_its_limit() -> None:
    found = list(compare_setups(told_apart()))

    assert len(found) == 2 * 2 * len(Metric)
    assert {one.against.policy for one in found} == {"none"}
    assert all(one.setup.limit == one.against.limit for one in found)
    by_pi = {one.metric: one.verdict for one in found if one.setup.policy == "pi"}
    assert (by_pi[Metric.COST], by_pi[Metric.RECALL]) == (BETTER, WORSE)
    assert list(compare_setups(BacktestResult(setups=(ONE, OTHER), cells=()))) == []
    assert list(compare_setups(measured())) == []


def test_few_sessions_are_judged_by_students_distribution() -> None:
    for sessions, quantile in ((4, 3.182), (6, 2.571), (12, 2.201)):
        out = NormalDist().inv_cdf(_compute_tail_share(sessions))
        assert out == pytest.approx(-quantile * sqrt(sessions / (sessions - 1)), rel=0.01)
    assert _compute_tail_share(10**6) == pytest.approx(0.025, abs=1e-5)


@settings(max_examples=25)
@given(some_measured())
def test_the_same_cells_give_the_same_differences_in_any_order(found: BacktestResult) -> None:
    shuffled = found.model_copy(update={"cells": tuple(reversed(found.cells))})

    assert list(compare_setups(shuffled)) == list(compare_setups(found))


def test_only_sessions_that_both_have_are_compared() -> None:
    ours, theirs = recalls(*[10] * 8), recalls(*[0] * 7, policy="other")
    elsewhere = [one.model_copy(update={"namespace": "elsewhere"}) for one in theirs]
    theirs[0] = theirs[0].model_copy(update={"outcome": CellOutcome.FAILED})
    ours[1] = ours[1].model_copy(update={"outcome": CellOutcome.TIMED_OUT})

    none = compare_cells(Metric.RECALL, ours, elsewhere)

    assert compare_cells(Metric.RECALL, ours, theirs).sessions == 5
    assert (none.sessions, none.overall, none.interval) == (0, None, None)

"""What may be concluded from two setups over the same sessions."""

from math import inf, sqrt
from random import Random
from statistics import NormalDist

import pytest
from backtests import bill, cell, measured, scores, setup, some_measured, told_apart
from hypothesis import given, settings
from hypothesis import strategies as st

from cutbank.domain.backtest.cell import Cell, Outcome
from cutbank.domain.backtest.comparison import (
    FEWEST,
    Measure,
    Verdict,
    difference,
    differences_of,
)
from cutbank.domain.backtest.resampling import _left_out, interval_of
from cutbank.domain.backtest.result import Measured

ONE, OTHER = setup("one"), setup("other")


def recalls(of: tuple[int, ...], stakes: int = 10, policy: str = "one") -> list[Cell]:
    return [
        cell(f"s{number}", setup(policy), canonical=scores(stakes, hits))
        for number, hits in enumerate(of)
    ]


def costs(of: list[float | None], policy: str = "one") -> list[Cell]:
    return [cell(f"s{number}", setup(policy), bill=bill(usd=usd)) for number, usd in enumerate(of)]


def test_what_keeps_more_in_each_session_is_better() -> None:
    ours, theirs = recalls((8, 7, 9, 8, 7, 8)), recalls((3, 2, 3, 4, 3, 2), policy="other")

    found = difference(Measure.RECALL, ours, theirs)

    assert found.micro == pytest.approx((47 - 17) / 60)
    assert found.verdict is Verdict.BETTER
    assert difference(Measure.RECALL, theirs, ours).verdict is Verdict.WORSE


def test_what_costs_more_in_each_session_is_worse() -> None:
    ours, theirs = costs([2.0, 3.0, 2.0, 2.5, 4.0, 2.0]), costs([1.0] * 6, policy="other")

    found = difference(Measure.COST, ours, theirs)

    assert found.micro == pytest.approx(15.5 / 6 - 1)
    assert found.macro == pytest.approx(15.5 / 6 - 1)
    assert found.verdict is Verdict.WORSE
    assert difference(Measure.COST, theirs, ours).verdict is Verdict.BETTER


def test_no_winner_is_named_inside_the_noise() -> None:
    ours = recalls((9, 1, 8, 2, 9, 1, 8, 3))
    theirs = recalls((1, 9, 2, 8, 2, 8, 1, 9), policy="other")

    found = difference(Measure.RECALL, ours, theirs)

    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]
    assert found.verdict is Verdict.CANNOT_TELL


def test_too_few_sessions_name_no_winner_however_clear() -> None:
    for sessions in range(1, FEWEST):
        ours, theirs = recalls((10,) * sessions), recalls((0,) * sessions, policy="other")

        assert difference(Measure.RECALL, ours, theirs).verdict is Verdict.CANNOT_TELL
    ours, theirs = recalls((10,) * FEWEST), recalls((0,) * FEWEST, policy="other")
    assert difference(Measure.RECALL, ours, theirs).verdict is Verdict.BETTER


def test_equal_setups_cannot_be_told_apart() -> None:
    found = difference(Measure.F3, recalls((5,) * 9), recalls((5,) * 9, policy="other"))

    assert (found.micro, found.interval) == (0, (0, 0))
    assert found.verdict is Verdict.CANNOT_TELL


def test_only_sessions_that_both_have_are_compared() -> None:
    ours = recalls((10,) * 8)
    theirs = recalls((0,) * 7, policy="other")
    theirs[0] = theirs[0].model_copy(update={"outcome": Outcome.FAILED})
    ours[1] = ours[1].model_copy(update={"outcome": Outcome.TIMED_OUT})

    assert difference(Measure.RECALL, ours, theirs).sessions == 5


def test_sessions_of_other_namespaces_are_other_sessions() -> None:
    ours = recalls((10,) * 8)
    theirs = [
        one.model_copy(update={"namespace": "elsewhere"}) for one in recalls((0,) * 8, policy="b")
    ]

    found = difference(Measure.RECALL, ours, theirs)

    assert (found.sessions, found.micro, found.interval) == (0, None, None)


def test_sessions_where_nothing_was_at_stake_bear_on_no_ratio() -> None:
    ours, theirs = recalls((8, 7)), recalls((3, 2), policy="other")
    nothing = {"canonical": scores(0, 0)}
    ours.append(cell("quiet", ONE, **nothing))
    theirs.append(cell("quiet", OTHER, **nothing))

    assert difference(Measure.RECALL, ours, theirs).sessions == 2
    assert difference(Measure.TOKENS, ours, theirs).sessions == 3


def test_a_mean_over_sessions_counts_those_with_five_stakes() -> None:
    ours, theirs = recalls((4, 4, 4), stakes=4), recalls((0, 0, 0), stakes=4, policy="other")
    ours.append(cell("large", ONE, canonical=scores(5, 5)))
    theirs.append(cell("large", OTHER, canonical=scores(5, 4)))

    found = difference(Measure.RECALL, ours, theirs)

    assert found.micro == pytest.approx(13 / 17)
    assert found.macro == pytest.approx(1 / 5)
    assert found.macro_sessions == 1


def test_what_has_no_known_price_is_left_out_and_never_free() -> None:
    found = difference(Measure.COST, costs([2.0, None, 2.0]), costs([1.0, 1.0, None], "other"))

    assert found.sessions == 1
    assert found.micro == pytest.approx(1.0)


def test_where_no_price_is_known_no_difference_is() -> None:
    found = difference(Measure.COST, costs([None, None]), costs([None, None], policy="other"))

    assert (found.sessions, found.micro, found.interval) == (0, None, None)


def test_resamples_in_which_the_other_has_nothing_count_as_any_other() -> None:
    # One session alone speaks against the first setup's, and is missing in a third of resamples.
    ours = [cell(f"s{number}", ONE, refused=1) for number in range(9)]
    theirs = [cell(f"s{number}", OTHER, refused=100 * (number == 0)) for number in range(9)]

    found = difference(Measure.REFUSED, ours, theirs)

    assert found.micro == pytest.approx(-0.91)
    assert found.interval is not None
    assert found.interval[1] == inf
    assert found.verdict is Verdict.CANNOT_TELL


def test_more_than_nothing_is_no_ratio() -> None:
    found = difference(Measure.COST, costs([2.0, 1.0]), costs([0.0, 0.0], policy="other"))

    assert (found.micro, found.interval, found.macro) == (None, None, None)


def test_a_known_case_of_f3() -> None:
    kept = scores(10, 5, context_hits=4, pairs=20, pair_hits=5)
    lost = scores(10, 5, context_hits=0, pairs=20, pair_hits=5)

    found = difference(
        Measure.F3, [cell("a", ONE, canonical=kept)], [cell("a", OTHER, canonical=lost)]
    )

    assert found.micro == pytest.approx(3 / (1 / 0.5 + 1 / 0.4 + 1 / 0.25))


def test_each_setup_is_compared_with_the_first_of_its_limit() -> None:
    found = list(differences_of(told_apart()))

    assert len(found) == 2 * 2 * len(Measure)
    assert {one.against.policy for one in found} == {"none"}
    assert all(one.setup.limit == one.against.limit for one in found)
    by_pi = {one.measure: one.verdict for one in found if one.setup.policy == "pi"}
    assert by_pi[Measure.COST] is Verdict.BETTER
    assert by_pi[Measure.RECALL] is Verdict.WORSE


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = Random(3)  # noqa: S311 - invented data
    trials = 200
    covered = 0
    for _ in range(trials):
        drawn = [random.gauss(1.0, 1.0) for _ in range(30)]
        found = interval_of([drawn], lambda sums: sums[0] / 30)
        assert found is not None
        covered += found[0] <= 1.0 <= found[1]

    # Percentile intervals of 30 values are a little narrow; 95 in 100 is what they aim at.
    assert 0.88 <= covered / trials <= 0.99


@pytest.mark.parametrize("sessions", [6, 12])
def test_few_sessions_name_no_more_false_winners_than_many(sessions: int) -> None:
    random = Random(7)  # noqa: S311 - invented data
    trials = 300
    named = 0
    for _ in range(trials):
        apart = [random.gauss(0.0, 1.0) for _ in range(sessions)]
        found = interval_of([apart], lambda sums: sums[0] / sessions)
        assert found is not None
        named += not found[0] <= 0.0 <= found[1]

    # Plain percentiles of six name 15 in 100.
    assert named / trials <= 0.08


@pytest.mark.parametrize(("sessions", "quantile"), [(4, 3.182), (6, 2.571), (12, 2.201)])
def test_few_sessions_are_judged_by_students_distribution(sessions: int, quantile: float) -> None:
    normal = NormalDist()

    out = normal.inv_cdf(_left_out(sessions))

    assert out == pytest.approx(-quantile * sqrt(sessions / (sessions - 1)), rel=0.01)
    assert _left_out(10**6) == pytest.approx(0.025, abs=1e-5)


def test_where_nothing_differs_by_right_a_winner_is_rarely_named() -> None:
    random = Random(5)  # noqa: S311 - invented data
    named = 0
    for _ in range(100):
        ours = recalls(tuple(random.randint(0, 10) for _ in range(25)))
        theirs = recalls(tuple(random.randint(0, 10) for _ in range(25)), policy="other")
        found = difference(Measure.RECALL, ours, theirs)
        named += found.verdict is not Verdict.CANNOT_TELL

    assert named <= 14


def test_the_order_in_which_cells_were_made_does_not_show_in_an_interval() -> None:
    ours, theirs = recalls((9, 1, 7, 2, 6, 3, 8)), recalls((2, 2, 5, 1, 1, 3, 0), policy="other")

    found = difference(Measure.RECALL, ours, theirs)

    assert difference(Measure.RECALL, ours[3:] + ours[:3], theirs) == found


@settings(max_examples=25)
@given(some_measured())
def test_the_same_cells_give_the_same_differences_in_any_order(found: Measured) -> None:
    shuffled = found.model_copy(update={"cells": tuple(reversed(found.cells))})

    assert list(differences_of(shuffled)) == list(differences_of(found))


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=12))
def test_the_other_way_round_is_the_opposite(hits: list[tuple[int, int]]) -> None:
    ours = recalls(tuple(one for one, _ in hits))
    theirs = recalls(tuple(other for _, other in hits), policy="other")

    forth = difference(Measure.RECALL, ours, theirs)
    back = difference(Measure.RECALL, theirs, ours)

    assert forth.micro is not None
    assert back.micro == pytest.approx(-forth.micro)
    assert forth.interval is not None
    assert back.interval == pytest.approx((-forth.interval[1], -forth.interval[0]))
    assert {forth.verdict, back.verdict} in (
        {Verdict.BETTER, Verdict.WORSE},
        {Verdict.CANNOT_TELL},
    )


def test_a_backtest_of_no_sessions_has_no_differences() -> None:
    assert list(differences_of(Measured(setups=(ONE, OTHER), cells=()))) == []
    assert list(differences_of(measured())) == []

"""What setups come to over all sessions."""

import pytest
from backtests import bill, cell, control, measured, scores, setup, some_measured
from hypothesis import given

from cutbank.domain.backtest.cell import Bill, Outcome
from cutbank.domain.backtest.result import Measured
from cutbank.domain.backtest.totals import (
    bills_added,
    control_totals_of,
    on_shared_sessions,
    totals_of,
)

PI = setup("pi")
NONE = setup("none")


def test_counts_add_up_and_ratios_come_last() -> None:
    found = totals_of(
        measured(
            cell("a", PI, canonical=scores(10, 9), bill=bill(1_000), calls=10),
            cell("b", PI, canonical=scores(90, 1), bill=bill(3_000), calls=30),
        )
    )

    assert found[0].canonical.recall == pytest.approx(10 / 100)
    assert found[0].tokens_per_call == pytest.approx(4_000 / 40)
    assert found[0].usd_per_call == pytest.approx(2 / 40)
    assert found[0].summed("calls") == 40


def test_what_failed_adds_nothing_and_is_named() -> None:
    failed = cell("b", PI, outcome=Outcome.FAILED, why="it raised")

    (total,) = totals_of(measured(cell("a", PI), failed))

    assert (total.sessions, len(total.cells)) == (2, 1)
    assert total.failed == (failed,)
    assert total.bill == bill()


def test_setups_are_put_side_by_side_over_the_sessions_that_all_have() -> None:
    crashed = setup("crashed")
    found = on_shared_sessions(
        totals_of(
            measured(
                cell("cheap", PI, bill=bill(10, 1.0), calls=1),
                cell("dear", PI, outcome=Outcome.DIED, why="it died"),
                cell("cheap", NONE, bill=bill(10, 2.0), calls=1),
                cell("dear", NONE, bill=bill(90, 9.0), calls=1),
                cell("dear", crashed, outcome=Outcome.FAILED, why="it raised"),
            )
        )
    )

    assert [one.usd for one in found] == [1.0, 2.0, None]
    assert [one.sessions for one in found] == [2, 1, 1]


def test_dollars_are_of_the_sessions_whose_prices_are_known() -> None:
    (total,) = totals_of(
        measured(cell("a", PI, bill=bill(usd=2.0)), cell("b", PI, bill=bill(usd=None)))
    )

    assert total.usd == 2
    assert total.usd_per_call == pytest.approx(2 / 10)
    assert [one.session for one in total.priced] == ["a"]
    assert total.bill.usd is None


def test_where_no_price_is_known_there_is_no_cost() -> None:
    (total,) = totals_of(measured(cell("a", PI, bill=bill(usd=None))))

    assert total.usd is None
    assert total.usd_per_call is None


def test_a_setup_without_cells_stands_in_its_place() -> None:
    found = totals_of(Measured(setups=(NONE, PI), cells=(cell("a", PI),)))

    assert [total.sessions for total in found] == [0, 1]
    assert found[0].canonical.recall is None


def test_the_bound_is_a_part_of_the_stakes_of_the_same_sessions() -> None:
    found = control_totals_of(
        measured(
            controls=(
                control("a", "drop", scores=scores(10, 0)),
                control("a", "bound", budget=500, bound=8.0),
                control("b", "drop", scores=scores(30, 0)),
                control("b", "bound", budget=500, bound=22.0),
            )
        )
    )

    assert [(one.name, one.budget) for one in found] == [("drop", None), ("bound", 500)]
    assert found[0].recall == 0
    assert found[1].recall == pytest.approx(30 / 40)


def test_dollars_of_which_one_is_not_known_add_up_to_none() -> None:
    added = bills_added((bill(1_000, 1.0), bill(2_000, None)))

    assert (added.prompt_tokens, added.prompt_usd, added.summaries_usd) == (3_000, None, 0.0)
    assert bills_added(()) == Bill(prompt_usd=0, uncached_usd=0, summaries_usd=0, output_usd=0)


@given(some_measured())
def test_each_cell_is_in_one_total(found: Measured) -> None:
    totals = totals_of(found)

    assert [total.setup for total in totals] == list(found.setups)
    assert sum(total.sessions for total in totals) == len(found.cells)
    assert sum(total.summed("calls") for total in totals) == sum(
        one.calls for one in found.cells if one.outcome is Outcome.DONE
    )

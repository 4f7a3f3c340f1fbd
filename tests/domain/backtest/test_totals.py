"""What setups come to over all sessions."""

import pytest
from backtests import bill, cell, control, measured, scores, setup

from cutbank.domain.backtest_cell import (
    Bill,
    CellOutcome,
    add_bills,
    compute_control_totals,
    compute_totals,
    restrict_to_shared_sessions,
)

PI = setup("pi")
NONE = setup("none")


def test_counts_add_up_and_ratios_come_last() -> None:
    failed = cell("c", PI, outcome=CellOutcome.FAILED, why="it raised")
    (found,) = compute_totals(
        measured(
            cell("a", PI, canonical=scores(10, 9), bill=bill(1_000), calls=10),
            cell("b", PI, canonical=scores(90, 1), bill=bill(3_000), calls=30),
            failed,
        )
    )

    assert found.canonical.recall == pytest.approx(10 / 100)
    assert found.tokens_per_call == pytest.approx(4_000 / 40)
    assert found.sum_field("calls") == 40
    assert (found.sessions, len(found.cells), found.failed) == (3, 2, (failed,))


def test_setups_are_put_side_by_side_over_the_sessions_that_all_have() -> None:
    crashed = setup("crashed")
    found = restrict_to_shared_sessions(
        compute_totals(
            measured(
                cell("cheap", PI, bill=bill(10, 1.0), calls=1),
                cell("dear", PI, outcome=CellOutcome.DIED, why="it died"),
                cell("cheap", NONE, bill=bill(10, 2.0), calls=1),
                cell("dear", NONE, bill=bill(90, 9.0), calls=1),
                cell("dear", crashed, outcome=CellOutcome.FAILED, why="it raised"),
            )
        )
    )

    assert [one.usd for one in found] == [1.0, 2.0, None]
    assert [one.sessions for one in found] == [2, 1, 1]


def test_dollars_are_of_the_sessions_whose_prices_are_known() -> None:
    (total,) = compute_totals(
        measured(cell("a", PI, bill=bill(usd=2.0)), cell("b", PI, bill=bill(usd=None)))
    )
    (unknown,) = compute_totals(measured(cell("a", PI, bill=bill(usd=None))))

    assert (total.usd, unknown.usd) == (2, None)
    assert [one.session for one in total.priced_cells] == ["a"]
    assert total.bill.usd is None


def test_the_bound_is_a_part_of_the_stakes_of_the_same_sessions() -> None:
    found = compute_control_totals(
        measured(
            controls=(
                control("a", "drop", scores=scores(10, 0)),
                control("a", "bound", budget=500, bound=8.0),
                control("b", "drop", scores=scores(30, 0)),
                control("b", "bound", budget=500, bound=22.0),
            )
        )
    )

    assert [(one.name, one.budget, one.recall) for one in found] == [
        ("drop", None, 0),
        ("bound", 500, pytest.approx(30 / 40)),
    ]


def test_dollars_of_which_one_is_not_known_add_up_to_none() -> None:
    added = add_bills((bill(1_000, 1.0), bill(2_000, None)))

    assert (added.prompt_tokens, added.prompt_usd, added.summaries_usd) == (3_000, None, 0.0)
    assert add_bills(()) == Bill(prompt_usd=0, uncached_usd=0, summaries_usd=0, output_usd=0)

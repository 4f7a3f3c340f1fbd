"""Summaries of a size and no text: what is measured with them, and what is not."""

import pytest
from pydantic import JsonValue

import cutbank
from cutbank import SessionStore
from cutbank.adapters.analysis.backtest.cells import CellBench
from cutbank.adapters.analysis.backtest.session_log import MeasuredSession
from cutbank.domain.backtest.cell import Cell, Setup
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.fidelity.scores import Scores

SETTINGS: dict[str, dict[str, JsonValue]] = {
    "pi": {"reserve_tokens": 200, "keep_tokens": 150},
    "pi, disabled": {"enabled": False, "keep_tokens": 150},  # only when a prompt is refused
    "scored-pruning": {},
    "none": {},
}


def measure(store: SessionStore, policy: str, limit: int, *, in_full: bool) -> Cell:
    bench = CellBench(MeasuredSession.read(store.session("a", create=False)), store.settings)
    if in_full:
        bench._never_compacts = lambda decider: False  # type: ignore[method-assign]
    setup = Setup(
        policy=policy.partition(",")[0],
        settings=SETTINGS[policy],
        limit=limit,
        summarizer="sized",
        budget=100,
    )
    return bench.measure_cell(setup, None).model_copy(update={"seconds": 0.0})


def test_where_no_prompt_is_large_enough_the_replay_that_is_left_out_changes_nothing(
    talks: SessionStore,
) -> None:
    compactions: list[int] = []
    largest = measure(talks, "none", 10**6, in_full=True).peak_tokens
    limits = (500, 1_000, largest - 1, largest, largest + 199, largest + 200, 5_000)
    for policy in ("pi", "pi, disabled", "scored-pruning"):
        for limit in limits:
            quick = measure(talks, policy, limit, in_full=False)
            assert quick == measure(talks, policy, limit, in_full=True)
            compactions.append(quick.compactions)

    assert compactions[0] > 1
    assert [compactions[at] for at in (4, 5)] == [1, 0]


def test_nothing_is_said_of_fidelity_where_there_is_no_text(talks: SessionStore) -> None:
    measured = cutbank.backtest(
        talks, ["pi"], limits=(1_000,), summarizer="sized", budgets=(100,), jobs=1
    )

    assert [one.canonical for one in measured.cells] == [Scores()] * 3
    assert measured.controls == ()
    assert measured.cells[0].canonical.recall is None


def test_a_summary_of_no_size_is_refused(talks: SessionStore, subtests: pytest.Subtests) -> None:
    for budgets in [(None,), (100, None)]:
        with subtests.test(str(budgets)), pytest.raises(InvalidSettingError, match="need a budget"):
            cutbank.backtest(talks, ["pi"], summarizer="sized", budgets=budgets)

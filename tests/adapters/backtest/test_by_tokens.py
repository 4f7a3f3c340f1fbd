"""Summaries of a size and no text come to the same by tokens alone and by the full engine."""

from collections.abc import Iterator
from itertools import product

import pytest
from pydantic import JsonValue

import cutbank
from cutbank import SessionStore
from cutbank.adapters.analysis.backtest.cells import CellBench
from cutbank.adapters.analysis.backtest.session_log import MeasuredSession
from cutbank.domain.backtest.cell import Cell, Setup
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.fidelity.scores import Scores
from cutbank.projections.replay.token_replay import TokenReplay
from cutbank.projections.replay.trace import NeedsFullReplay

GOES_BY_TOKENS: tuple[str, dict[str, JsonValue]] = "pi", {"reserve_tokens": 200, "keep_tokens": 150}
LOOKS_AT_TEXTS: tuple[str, dict[str, JsonValue]] = ("scored-pruning", {})


def setups(policy: str, settings: dict[str, JsonValue]) -> Iterator[Setup]:
    for limit, budget in product((500, 1_000, 2_000), (20, 100)):
        yield Setup(
            policy=policy, settings=settings, limit=limit, summariser="sized", budget=budget
        )


def timeless(cell: Cell) -> Cell:
    return cell.model_copy(update={"seconds": 0.0})


def bench_of(store: SessionStore, key: str) -> CellBench:
    return CellBench(MeasuredSession.read(store.session(key, create=False)), store.settings)


def test_tokens_alone_and_the_full_engine_come_to_equal_cells(talks: SessionStore) -> None:
    compactions = 0
    for key in "abc":
        by_tokens, in_full = bench_of(talks, key), bench_of(talks, key)
        in_full._trace = NeedsFullReplay("to be compared with")
        for setup in setups(*GOES_BY_TOKENS):
            assert setup.budget is not None
            order = by_tokens._make_terms(setup, None)
            assert isinstance(by_tokens._replay_tokens(order, setup.budget), TokenReplay)

            found = by_tokens.measure_cell(setup, None)

            assert timeless(found) == timeless(in_full.measure_cell(setup, None))
            compactions += found.compactions
    assert compactions > 10


def test_who_looks_at_texts_is_replayed_in_full(talks: SessionStore) -> None:
    bench = bench_of(talks, "a")
    setup = next(setups(*LOOKS_AT_TEXTS))

    found = bench._replay_tokens(bench._make_terms(setup, None), 100)

    assert isinstance(found, NeedsFullReplay)
    assert bench.measure_cell(setup, None).compactions > 0


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

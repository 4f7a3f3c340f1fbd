"""The whole way over real transcripts: from a folder to the report, and again from the cache."""

import json
from pathlib import Path

import pytest
from transcripts import NO_SESSIONS, SESSIONS

import cutbank
from cutbank.adapters.analysis.backtest.imported_transcripts import import_temporarily
from cutbank.adapters.analysis.backtest.report.report_files import write_report
from cutbank.domain.backtest.cell import CellOutcome
from cutbank.domain.policies.catalog import POLICIES

LIMITS = (16_000, 32_000)


@pytest.mark.slow
@pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)
def test_a_report_over_all_real_sessions(tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    policies = ["none", "recorded", *POLICIES]
    with import_temporarily(Path(SESSIONS or "")) as (store, _):
        measured = cutbank.backtest(store, policies, limits=LIMITS, cache=cache)
        again = cutbank.backtest(store, policies, limits=LIMITS, cache=cache)
        sessions = len(store.sessions())

    assert again == measured
    assert {cell.outcome for cell in measured.cells} == {CellOutcome.DONE}
    counted = sessions - len(measured.skipped)
    assert len(measured.cells) == counted * len(policies) * len(LIMITS) > 0
    for cell in measured.cells:
        assert 0 <= cell.canonical.hits <= cell.canonical.stakes
        assert cell.own.hits <= cell.own_bound + 1e-6
        assert sum(cell.context) == cell.bill.prompt_tokens
        assert len(cell.lost) == cell.canonical.stakes - cell.canonical.hits
        if cell.setup.policy == "none":
            assert cell.canonical.hits == cell.canonical.stakes
    full = [one for one in measured.controls if one.name == "full history"]
    assert all(one.scores.hits == one.scores.stakes for one in full)
    written = write_report(measured, tmp_path / "report")
    assert {path.name for path in written} >= {"report.html", "cells.parquet", "measured.json"}
    kept = json.loads((tmp_path / "report" / "measured.json").read_text(encoding="utf-8"))
    assert len(kept["cells"]) == len(measured.cells)

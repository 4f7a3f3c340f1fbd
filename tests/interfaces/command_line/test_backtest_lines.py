"""A backtest on a terminal: wide and narrow, with what failed and what may be concluded."""

import re

import pytest
from backtests import cell, control, measured, scores, setup, some_measured, told_apart
from hypothesis import HealthCheck, given, settings

from cutbank.adapters.interfaces.command_line.printing import escape_controls
from cutbank.adapters.interfaces.commands.backtest_tables import MAX_NAMED_ROWS, print_backtest
from cutbank.domain.backtest.cell import BacktestResult, CellOutcome

from .conftest import act_as_terminal

BOLD = re.compile(r"\x1b\[[\d;]*m")


def lines(found: BacktestResult, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_backtest(found)
    return BOLD.sub("", capsys.readouterr().out).replace("\t", "  ").splitlines()


def test_setups_bounds_verdicts_and_failures_of_each_limit_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = lines(told_apart(), capsys)

    def words_of(name: str) -> list[str]:
        return next(line for line in said if line.startswith(name)).split()

    assert sum(line.startswith("none ") for line in said) == 2
    assert words_of("none ")[:8] == ["none", "8/8", "0", "900", "72,028", "$72.00", "0", "1.00"]
    assert words_of("bound ")[:3] == ["bound", "500", "0.75"]
    assert words_of("random ledger ")[:4] == ["random", "ledger", "500", "0.20"]
    verdict = next(line for line in said if line.startswith("pi budget=500") and " R " in line)
    assert "-0.65 [-0.69, -0.61]" in verdict
    assert verdict.split()[-2:] == ["worse", "8"]
    text = "\n".join(said)
    for part in (
        "limit 16,000 tokens",
        "limit 32,000 tokens",
        "\nagainst none",
        "session-0 under rolling-timeline",
        "failed: rolling-timeline failed at call 3",
        "empty: it has no calls of a model",
    ):
        assert part in text


def test_where_nothing_was_at_stake_no_control_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = scores(0, 0, context_hits=0, pairs=0, pair_hits=0)
    drop = control("a", "drop", scores=nothing)

    said = "\n".join(
        lines(measured(cell("a", setup(), canonical=nothing), controls=(drop,)), capsys)
    )

    assert "nothing was at stake: no call used a fact" in said
    assert "drop" not in said


def test_of_a_handful_of_sessions_no_winner_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = lines(told_apart(sessions=5), capsys)

    verdicts = [line for line in said if " R " in line and "[" in line]
    assert verdicts
    assert all("cannot tell" in line for line in verdicts)


def test_of_many_the_first_are_named_and_what_is_true_of_all_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = [
        cell(f"s{number:02}", setup(), outcome=CellOutcome.DIED, why="memory ran out")
        for number in range(MAX_NAMED_ROWS + 7)
    ]
    idle = [cell(f"s{number}", setup("none"), why="it never compacted") for number in range(30)]
    skipped = {f"empty-{number}": "no model was called in it" for number in range(30)}

    said = lines(measured(*failed), capsys)
    together = lines(measured(*idle, skipped=skipped), capsys)

    assert sum("memory ran out" in line for line in said) == MAX_NAMED_ROWS
    assert "  and 7 more" in said
    assert "  none at 16,000, 30 sessions, as s0: it never compacted" in together
    assert "  30 sessions, as empty-0: no model was called in it" in together


def test_a_narrow_terminal_has_the_figures_below_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    act_as_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    narrow = lines(told_apart(), capsys)
    monkeypatch.setenv("COLUMNS", "220")
    wide = lines(told_apart(), capsys)

    assert sum(line.startswith("policy") for line in wide) == 4
    assert len(narrow) > len(wide)
    figures = "\n".join(narrow[:-2])  # the last two are caveats
    assert all(figure in figures for figure in ("72,028", "1.00", "refused"))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=some_measured())
def test_whatever_was_measured_can_be_shown(
    found: BacktestResult, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "\n".join(lines(found, capsys))

    assert "word for word" in said
    assert escape_controls(said) == said

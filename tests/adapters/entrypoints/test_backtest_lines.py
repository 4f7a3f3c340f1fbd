"""A backtest on a terminal: wide and narrow, with what failed and what may be concluded."""

import re
import sys

import pytest
from backtests import bill, cell, control, measured, scores, setup, some_measured, told_apart
from hypothesis import HealthCheck, given, settings

from cutbank.adapters.interfaces.command_line.backtest_lines import NAMED, say_measured
from cutbank.adapters.interfaces.command_line.printing import readable
from cutbank.domain.backtest.cell import Outcome
from cutbank.domain.backtest.result import Measured

BOLD = re.compile(r"\x1b\[[\d;]*m")


def lines(found: Measured, capsys: pytest.CaptureFixture[str]) -> list[str]:
    say_measured(found)
    return BOLD.sub("", capsys.readouterr().out).replace("\t", "  ").splitlines()


def words_of(name: str, of: list[str]) -> list[str]:
    return next(line for line in of if line.startswith(name)).split()


def test_each_limit_has_its_setups_with_cost_and_fidelity(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = lines(told_apart(), capsys)

    assert "limit 16,000 tokens" in said
    assert "limit 32,000 tokens" in said
    none = [line.split() for line in said if line.startswith("none ")]
    assert len(none) == 2
    assert none[0][:8] == ["none", "8/8", "0", "900", "72,028", "$72.00", "0", "1.00"]


def test_controls_and_the_bound_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    said = lines(told_apart(), capsys)

    assert words_of("bound ", said)[:3] == ["bound", "500", "0.75"]
    assert words_of("random ledger ", said)[:4] == ["random", "ledger", "500", "0.20"]
    assert said.index(next(line for line in said if line.startswith("bound"))) > said.index(
        next(line for line in said if line.startswith("none"))
    )


def test_where_no_summary_has_a_text_no_column_is_of_what_texts_keep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sized = [setup("pi", summariser="sized", budget=budget) for budget in (500, 800)]

    said = lines(measured(*(cell(name, one) for name in "abcdefgh" for one in sized)), capsys)

    heading = words_of("policy", said)
    assert "cost" in heading
    assert not {"R", "F3", "constraints"} & set(heading)
    assert any(line.startswith("by sized") for line in said)
    assert not any(line.split()[-2:] == ["tell", "0"] for line in said)


def test_where_nothing_was_at_stake_no_control_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = scores(0, 0, context_hits=0, pairs=0, pair_hits=0)
    drop = control("a", "drop", scores=nothing)

    say_measured(measured(cell("a", setup(), canonical=nothing), controls=(drop,)))

    said = capsys.readouterr().out
    assert "nothing was at stake: no call used a fact" in said
    assert "drop" not in said


def test_a_verdict_comes_with_its_interval_and_its_sessions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = lines(told_apart(), capsys)

    assert any(line.startswith("against none") for line in said)
    found = next(line for line in said if line.startswith("pi budget=500") and " R " in line)
    assert "-0.65 [-0.69, -0.61]" in found
    assert found.split()[-2:] == ["worse", "8"]


def test_of_a_handful_of_sessions_no_winner_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = lines(told_apart(sessions=5), capsys)

    verdicts = [line for line in said if " R " in line and "[" in line]
    assert verdicts
    assert all("cannot tell" in line for line in verdicts)


def test_what_failed_and_what_was_left_out_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = "\n".join(lines(told_apart(), capsys))

    assert "session-0 under rolling-timeline" in said
    assert "failed: rolling-timeline failed at call 3" in said
    assert "empty: it has no calls of a model" in said


def test_of_many_failures_the_first_are_named_and_the_others_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = [
        cell(f"s{number:02}", setup(), outcome=Outcome.DIED, why="memory ran out")
        for number in range(NAMED + 7)
    ]

    said = lines(measured(*failed), capsys)

    assert sum("memory ran out" in line for line in said) == NAMED
    assert "  and 7 more" in said


def test_what_is_told_of_many_sessions_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    many = [cell(f"s{number}", setup("none"), why="it never compacted") for number in range(30)]
    skipped = {f"empty-{number}": "no model was called in it" for number in range(30)}

    said = lines(measured(*many, skipped=skipped), capsys)

    assert "  none at 16,000, 30 sessions, as s0: it never compacted" in said
    assert "  30 sessions, as empty-0: no model was called in it" in said


def test_prompts_that_were_refused_are_said_to_count_as_sent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note = "refused: prompts larger than the limit; they count as if they had been sent"

    assert note in lines(measured(cell("a", setup(), refused=1)), capsys)
    assert note not in lines(measured(cell("a", setup())), capsys)


def test_the_caveats_are_said_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    said = lines(told_apart(), capsys)

    assert "do not foretell success" in said[-2]
    assert "word for word" in said[-1]


def test_a_cost_of_fewer_sessions_is_marked_and_an_unknown_one_is_a_dash(
    capsys: pytest.CaptureFixture[str],
) -> None:
    some = [cell("a", setup("some"), bill=bill(usd=3.0)), cell("b", setup("some"))]
    some[1] = some[1].model_copy(update={"bill": bill(usd=None)})
    none = cell("a", setup("unpriced"), bill=bill(usd=None))

    said = lines(measured(*some, none), capsys)

    assert words_of("some ", said)[5] == "$3.00*"
    assert words_of("unpriced ", said)[5] == "-"
    assert "* of 1 of 2 sessions: prices of the others are not known" in said


def test_a_narrow_terminal_has_the_figures_below_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    narrowest = lines(told_apart(), capsys)
    monkeypatch.setenv("COLUMNS", "100")
    narrow = lines(told_apart(), capsys)
    monkeypatch.setenv("COLUMNS", "220")
    wide = lines(told_apart(), capsys)

    caveats = 2
    assert sum(line.startswith("policy") for line in wide) == 4
    for said in (narrow, narrowest):
        assert len(said) > len(wide)
        for figure in ("72,028", "1.00", "refused"):
            assert any(figure in line for line in said[:-caveats])


def test_a_control_without_a_budget_has_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    drop = control("a", "drop", scores=scores(10, 0))

    said = lines(measured(cell("a", setup()), controls=(drop,)), capsys)

    assert words_of("drop ", said)[:3] == ["drop", "-", "0.00"]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(found=some_measured())
def test_whatever_was_measured_can_be_shown(
    found: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "\n".join(lines(found, capsys))

    assert "word for word" in said
    assert readable(said) == said

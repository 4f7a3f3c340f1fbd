"""What a terminal is sent: tables of any width, backtests, and no text that it obeys or hides."""

import io
import json
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from backtests import cell, control, measured, scores, setup, some_measured, told_apart
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from cutbank.adapters.interfaces.command_line.printing import (
    escape_controls,
    print_json,
    print_rows,
    print_text,
)
from cutbank.adapters.interfaces.commands.backtest import MAX_LISTED_ROWS, print_backtest
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.domain.backtest_cell import BacktestResult, CellOutcome

from .conftest import Run, act_as_terminal


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


HARMFUL = "\x9b\x07\x7f\u202e\u2066\u200b\u00ad\ufeff\u3164\U000e0041\U0001d173"


@example(HARMFUL)
@given(st.text(st.sampled_from(HARMFUL) | st.characters(exclude_categories=["Cs"])))
def test_a_terminal_shows_every_character_and_obeys_none(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", lines := Terminal())
        print_text(text)
        patch.setattr(sys, "stdout", document := Terminal())
        print_json({"text": text, text: 1})

    assert json.loads(document.getvalue())["text"] == text
    visible = (lines.getvalue() + document.getvalue()).replace("\n", "").replace("\t", "")
    assert not {unicodedata.category(one) for one in visible} & {"Cc", "Zl", "Zp"}
    assert not set(visible) & set(HARMFUL)


NAME = "a-rather-long-name-of-a-session-0123456789"
NUMBERS = [1_000_000 + n for n in range(8)]
HEADINGS = ["session", *(f"tokens {n}" for n in range(8)), "title"]
CELLS = [[NAME, *NUMBERS, "What it is about, 다음 작업 계획, at length"], ["b", *NUMBERS, ""]]
ROWS = [dict(zip(HEADINGS, cells, strict=True)) for cells in CELLS]


def test_a_table_fits_the_terminal_and_loses_no_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a pipe a tab is between values, and nothing is padded.
    print_rows(ROWS)
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == HEADINGS
    assert first.split("\t") == [NAME, *(f"{number:,}" for number in NUMBERS), CELLS[0][-1]]
    assert second.startswith("b\t1,000,000\t")

    act_as_terminal(monkeypatch)
    for width in (20, 60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))

        print_rows(ROWS)

        out = capsys.readouterr().out
        assert max(map(cell_len, out.splitlines())) <= width
        assert NAME in "".join(out.split())
        assert all(out.count(f"{number:,}") == len(ROWS) for number in NUMBERS)


NEW_VIEW = ["--set", "keep_tokens=5000"]
VERBS = [
    ["import", "{file}"], ["import", "{file}"], ["sessions"], ["costs"], ["costs", "--by", "day"],
    ["compact", "last", *NEW_VIEW, "--dry-run"], ["compact", "last", *NEW_VIEW], ["meter", "last"],
    ["diff", "last"], ["diff", "last", "--full"], ["lineage", "last"], ["audit", "last"],
    ["audit", "last", "--brief"],
    ["replay", "last", "--policy", "pi", "--limit", "64000"], ["search", "voucher"],
    ["backtest", "last", "--policies", "pi,none", "--limits", "64000", "--no-cache"],
    ["export", "last", "--to", "codex", "--out", "{folder}/out.jsonl"], ["formats"], ["policies"],
    ["settings"], ["pin", "last", "12"], ["unpin", "last", "12"], ["fork", "last", "another-way"],
    ["revert", "last"], ["verify"], ["rebuild"], ["idle", "--status"],
    ["demo", "--db", "{folder}/demo.db"],
]  # fmt: skip


@pytest.mark.slow
def test_every_answer_fits_80_columns(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path / "sample.jsonl")
    places = {"file": tmp_path / "sample.jsonl", "folder": tmp_path}
    act_as_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    long = []
    for words in VERBS:
        answer = run(*(word.format_map(places) for word in words))
        assert answer.code == 0, (words, answer.err)
        lines = [line for line in answer.out.splitlines() if not line.startswith("  $ ")]
        # A path stays whole, so that it can be copied.
        long += [line for line in lines if cell_len(line) > 80 and " " in line.strip()]
    assert not long


BOLD = re.compile(r"\x1b\[[\d;]*m")


def lines(found: BacktestResult, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_backtest(found)
    return BOLD.sub("", capsys.readouterr().out).replace("\t", "  ").splitlines()


def test_setups_bounds_verdicts_and_failures_of_each_limit_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = lines(told_apart(), capsys)

    def rows_of(name: str) -> list[list[str]]:
        return [line.split() for line in said if line.startswith(name)]

    cost, kept, trouble, *others = rows_of("none ")
    assert len(others) == 3, "of the other limit"
    assert cost == ["none", "900", "72,028", "$72.00", "0"]
    assert (kept[:2], trouble[:3]) == (["none", "1.00"], ["none", "8/8", "0"])
    assert rows_of("bound ")[0][2:4] == ["500", "0.75"]
    assert rows_of("random ledger ")[0][3:5] == ["500", "0.20"]
    verdict = next(line for line in said if line.startswith("pi budget=500") and " R " in line)
    assert "-0.65 [-0.69, -0.61]" in verdict
    assert verdict.split()[-2:] == ["worse", "8"]
    text = "\n".join(said)
    for part in (
        "limit 16,000 tokens",
        "limit 32,000 tokens",
        "\nAgainst none",
        "\nsession-0  rolling-timeline",
        "failed  rolling-timeline failed at call 3",
        "it has no calls of a model  1  empty",
    ):
        assert part in text


def test_where_nothing_was_at_stake_no_control_is_shown_and_no_winner_of_few_sessions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = scores(0, 0, context_hits=0, pairs=0, pair_hits=0)
    drop = control("a", "drop", scores=nothing)

    said = lines(measured(cell("a", setup(), canonical=nothing), controls=(drop,)), capsys)
    verdicts = [
        line for line in lines(told_apart(sessions=5), capsys) if " R " in line and "[" in line
    ]

    assert "drop" not in "\n".join(said)
    assert verdicts
    assert all("cannot tell" in line for line in verdicts)


def test_of_many_the_first_are_named_and_what_is_true_of_all_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = [
        cell(f"s{number:02}", setup(), outcome=CellOutcome.DIED, why="memory ran out")
        for number in range(MAX_LISTED_ROWS + 7)
    ]
    idle = [cell(f"s{number}", setup("none"), why="it never compacted") for number in range(30)]
    skipped = {f"empty-{number}": "no model was called in it" for number in range(30)}

    said = lines(measured(*failed), capsys)
    together = lines(measured(*idle, skipped=skipped), capsys)

    assert sum("memory ran out" in line for line in said) == MAX_LISTED_ROWS
    assert "  and 7 more" in said
    assert "none at 16,000: it never compacted  30  s0" in together
    assert "no model was called in it  30  empty-0" in together


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

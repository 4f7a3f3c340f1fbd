"""`cutbank backtest` and `replay`: what they take, what they say, and how they end."""

import json
import shlex
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from claude_code_talk import Talk, text

from cutbank import BacktestResult, Replay, Trigger
from cutbank.adapters.interfaces.commands.replay import print_replay
from cutbank.domain.context_limit import LimitSource
from cutbank.projections.recording import RecordedCall
from cutbank.projections.replay import FutileCompaction, ReplayedCall

from .conftest import PROGRAM, Refusals, Run, answered_wrongly

pytestmark = pytest.mark.usefixtures("long_talk")
POLICIES = ("--policies", "none,pi", "--limits", "4000", "--jobs", "1")


def test_a_session_is_measured_and_all_are(run: Run) -> None:
    one = run("backtest", "long", *POLICIES, "--json")
    every = run("backtest", "all", *POLICIES, "--json")

    assert (one.code, every.code) == (0, 0)
    assert one.json == every.json, "it is the only one, and was measured once"
    measured = BacktestResult.model_validate(one.json)
    assert [cell.setup.policy for cell in measured.cells] == ["none", "pi"]
    assert [cell.compactions > 0 for cell in measured.cells] == [False, True]


def test_transcripts_are_measured_in_a_database_of_their_own(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "talks"
    folder.mkdir()
    for name in ("one", "two"):
        talk = Talk()
        talk.user("What is it?", sessionId=name)
        talk.says("m1", text("Silt."), sessionId=name)
        lines = [json.dumps(entry) for entry in talk.entries]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "broken.jsonl").write_text('{"type": "user", "sessionId": ', encoding="utf-8")
    before = run("sessions", "--json").json

    answer = run("backtest", folder, *POLICIES, "--json")
    again = run("backtest", folder, *POLICIES, "--json")

    assert {cell["session"] for cell in answer.json["cells"]} == {"one", "two"}
    assert again.json == answer.json, "and that from the cache"
    assert run("sessions", "--json").json == before


WRONG: Refusals = [
    (["nobody"], "no session 'nobody'"),
    (["all", "--limits", "0"], "a limit is 1 token or more, not 0"),
    (["all", "--limits", "many"], "--limits takes whole numbers of tokens, not 'many'"),
    (["all", "--limits", "5,,6"], "--limits takes names or numbers with commas"),
    (["all", "--policies", "silt"], "there is no policy 'silt'"),
    (["all", "--set", "silt=1"], "no policy of this backtest has a setting 'silt'"),
    (["all", "--set", "keep_tokens"], "--set takes KEY=VALUE"),
    (["all", "--set", "keep_tokens=-1"], "keep_tokens cannot be -1"),
    (["all", "--budgets", "-5"], "a budget is 1 token or more"),
    (["all", "--summarizer", "poet"], "no summarizer 'poet'"),
    (["all", "--timeout", "0"], "more than 0, not 0"),
    (["all", "--no-cache", "--cache", "c.db"], "--no-cache takes no --cache"),
    (["empty"], "empty holds no transcripts"),
    (["all", "--policies", "none", "--set", "a=1"], "no policy of this backtest has a setting 'a'"),
    (["all", "--namespace", "else"], "there are no sessions in namespace 'else'"),
    (["all", "--report", "full/of"], "full/of: no report can be written there"),
]


def test_what_cannot_be_measured_is_refused_in_one_line_before_anything_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("full").write_text("a file")
    rows = [([words[0], *POLICIES, *words[1:]], said) for words, said in WRONG]

    assert not answered_wrongly(run, rows, "backtest")
    cache = tmp_path / "cache.db"
    run("backtest", "long", *POLICIES, "--report", "full", "--cache", cache)
    assert not cache.exists(), "a report that cannot be written is refused before that"


def test_an_answer_is_said_though_its_report_cannot_be_written_or_rows_failed(
    run: Run, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    (report / "measured.json").mkdir(parents=True)

    answer = run("backtest", "long", *POLICIES, "--report", report)
    as_json = run("backtest", "long", *POLICIES, "--report", report, "--json")
    by_model = ("--summarizer", "llm", "--model", "gpt-4o")
    failed = run("backtest", "long", *POLICIES, *by_model, "--no-cache", "--json")

    assert (answer.code, as_json.code, failed.code) == (2, 2, 1)
    assert "limit 4,000 tokens" in answer.out
    assert f"{report}: cannot be written" in answer.err
    assert len(as_json.json["cells"]) == 2
    assert {cell["outcome"] for cell in failed.json["cells"]} == {"done", "failed"}


def test_an_interrupt_leaves_what_is_done(run: Run, tmp_path: Path) -> None:
    """The real program, interrupted as a terminal does it."""
    # Far more than it needs to be met at work, even where this process waits for its turn.
    limits = [str(4_000 + number) for number in range(200)]
    words = ["backtest", "long", "--policies", "none,pi", "--jobs", "1", "--limits"]
    cache = tmp_path / "cache" / "cutbank" / "backtests.db"
    # What a shell runs in the background ignores interrupts, and so does all that it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [*PROGRAM, *words, ",".join(limits)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGINT, before)
        while process.poll() is None and not (cache.exists() and count_rows(cache)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in said
    kept = count_rows(cache)
    assert 0 < kept < 400
    told = f"what was measured is kept in {cache}: begin it again to go on"
    assert said.splitlines()[0] == told
    answer = run(*words, ",".join(limits[:6]), "--json")
    assert (answer.code, len(answer.json["cells"])) == (0, 12)


def count_rows(cache: Path) -> int:
    with closing(sqlite3.connect(f"file:{cache}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("select count(*) from kept").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # it is being made


PI = ["replay", "long", "--policy", "pi", "--set", "keep_tokens=1000", "--limit", "9000"]


def test_each_compaction_has_its_row_and_nothing_is_left_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("sessions", "--json").json

    answer = run(*PI)
    whole = run(*PI, "--json").json

    sent = whole["sent"]
    assert (answer.code, answer.err) == (0, "")
    assert whole["compactions"] == sum(len(one["compacted"]) for one in sent) > 0
    rows = answer.out.count("\tthreshold\t#") + answer.out.count("\toverflow\t#")
    assert rows == whole["compactions"]
    assert f"peak         {whole['peak']:,}\n" in answer.out
    assert run("sessions", "--json").json == before

    # A missing summary is named in one line.
    monkeypatch.setenv("CUTBANK_SUMMARY_MODEL", "anthropic:claude-haiku-4-5")
    missing = run(*PI, "--summarizer", "llm", "--cache", tmp_path / "summaries.db")
    assert (missing.code, missing.out, missing.err.count("\n")) == (1, "", 1)
    assert "not in the cache" in missing.err
    assert "`replay --allow-llm` asks" in missing.err


def test_calls_that_were_refused_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    futile = (FutileCompaction(Trigger.OVERFLOW, "nobody answers"),)
    calls = tuple(
        ReplayedCall(RecordedCall(n, 3 * n), 9_000, 0, 9_000, futile=futile, is_refused=True)
        for n in (2, 3, 4, 9)
    )
    print_replay(Replay("s", "default", "pi", 8_000, LimitSource.ARGUMENT, "extractive", calls))

    assert capsys.readouterr().out.endswith("\ncalls over the limit: 2-4 9\n")


def test_a_lineage_is_there_when_asked_for(run: Run, long_talk: Path) -> None:
    answer = run(*PI, "--lineage", "what if")

    assert answer.code == 0
    assert "as the lineage what if" in answer.out
    program, *words = shlex.split(answer.out.splitlines()[-1])
    assert (program, run(*words).code, run("verify").code) == ("cutbank", 0, 0)
    again = run(*PI, "--lineage", "what if")
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "has a lineage 'what if' already" in again.err

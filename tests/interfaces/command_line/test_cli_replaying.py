"""`cutbank replay` on a terminal: what it says, what it leaves behind, and how it refuses."""

import json
import shlex
from pathlib import Path

import pytest

from cutbank.adapters.analysis.replaying.run_replay import Replay, ReplayCallResult
from cutbank.adapters.interfaces.commands.replay import print_replay
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.context_limit import LimitSource
from cutbank.projections.replay.replay import FutileCompaction

from .conftest import Run

PI = ["replay", "long", "--policy", "pi", "--set", "keep_tokens=1000", "--limit", "9000"]


def test_each_compaction_has_its_lines_and_nothing_is_left_behind(
    run: Run, long_talk: Path
) -> None:
    before = run("sessions", "--json").json

    answer = run(*PI)
    whole = run(*PI, "--json").json

    sent = whole["sent"]
    assert (answer.code, answer.err) == (0, "")
    assert whole["compactions"] == sum(len(one["compacted"]) for one in sent) > 0
    lines = answer.out.count("threshold at #") + answer.out.count("overflow at #")
    assert lines == whole["compactions"]
    assert f"{whole['tokens']:,} tokens in all, the largest {whole['peak']:,}" in answer.out
    assert [one["call"] for one in sent] == list(range(1, whole["calls"] + 1))
    assert whole["tokens"] == sum(one["tokens"] for one in sent)
    assert run("sessions", "--json").json == before


def test_calls_in_a_row_that_came_to_the_same_share_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def sent(call: int, reason: str) -> ReplayCallResult:
        futile = (FutileCompaction(Trigger.OVERFLOW, reason),)
        return ReplayCallResult(call, 3 * call, 9_000, 0, futile=futile, is_refused=True)

    calls = [sent(n, f"no room: {9_000 + n:,} tokens; the largest is #{n}") for n in range(2, 9)]
    calls.append(sent(9, "nobody answers (after 3 s)"))
    print_replay(Replay("s", "default", "pi", 8_000, LimitSource.ARGUMENT, "extractive", (*calls,)))

    assert capsys.readouterr().out.splitlines()[:4] == [
        "calls 2-8: overflow: no room: 9,002 tokens",
        "          refused: the prompt is larger than the limit",
        "call 9: overflow: nobody answers",
        "          refused: the prompt is larger than the limit",
    ]


def test_a_lineage_and_a_file_are_there_when_asked_for(
    run: Run, long_talk: Path, tmp_path: Path
) -> None:
    file = tmp_path / "views.jsonl"

    answer = run(*PI, "--lineage", "what if", "--dump-views", file)

    assert answer.code == 0
    assert "as the lineage what if" in answer.out
    program, *words = shlex.split(answer.out.splitlines()[-1])
    assert (program, run(*words).code, run("verify").code) == ("cutbank", 0, 0)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    sent = run(*PI, "--json").json["sent"]
    assert [line["tokens"] for line in lines] == [one["tokens"] for one in sent]
    again = run(*PI, "--lineage", "what if")
    assert (again.code, again.err.count("\n")) == (1, 1)
    assert "has a lineage 'what if' already" in again.err


def test_missing_summaries_are_counted_in_one_line(
    run: Run, long_talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTBANK_SUMMARY_MODEL", "anthropic:claude-haiku-4-5")

    answer = run(*PI, "--summarizer", "llm", "--cache", tmp_path / "summaries.db")

    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert "not in the cache" in answer.err
    assert "`replay --allow-llm` asks it" in answer.err

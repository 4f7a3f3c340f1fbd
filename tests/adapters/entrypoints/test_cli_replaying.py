"""`cutbank replay` on a terminal: what it says, what it leaves behind, and how it refuses."""

import json
import shlex
from pathlib import Path

import pytest
from databases import on_sqlite

from cutbank.adapters.analysis.replaying.replay_result import Replay, Sent
from cutbank.adapters.interfaces.command_line.replay_lines import say_replay
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.context_limit import LimitSource
from cutbank.projections.replay.replayed_call import Futile

from .conftest import Run

PI = ["replay", "long", "--policy", "pi", "--set", "keep_tokens=1000", "--limit", "9000"]


def test_each_compaction_has_its_lines_and_totals_come_last(run: Run, long_talk: Path) -> None:
    answer = run(*PI)

    assert answer.code == 0
    told = run(*PI, "--json").json
    assert told["compactions"] > 0
    assert (
        answer.out.count("threshold at #") + answer.out.count("overflow at #")
        == (told["compactions"])
    )
    assert f"{told['tokens']:,} tokens in all, the largest {told['peak']:,}" in answer.out
    assert answer.err == ""


def test_calls_in_a_row_that_came_to_the_same_share_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def sent(call: int, reason: str) -> Sent:
        futile = (Futile(Trigger.OVERFLOW, reason),)
        return Sent(call, 3 * call, 9_000, 0, futile=futile, is_refused=True)

    calls = [sent(n, f"no room: {9_000 + n:,} tokens; the largest is #{n}") for n in range(2, 9)]
    other = sent(9, "nobody answers (after 3 s)")

    say_replay(
        Replay("s", "default", "pi", 8_000, LimitSource.ARGUMENT, "extractive", (*calls, other))
    )

    assert capsys.readouterr().out.splitlines()[:4] == [
        "calls 2-8: overflow: no room: 9,002 tokens",
        "          refused: the prompt is larger than the limit",
        "call 9: overflow: nobody answers",
        "          refused: the prompt is larger than the limit",
    ]


@on_sqlite
def test_a_stored_lineage_is_named_with_the_command_that_shows_it(
    run: Run, long_talk: Path
) -> None:
    said = run(*PI, "--lineage", "what if").out

    program, *words = shlex.split(said.splitlines()[-1])
    assert program == "cutbank"
    assert run(*words).code == 0


def test_json_tells_of_every_call(run: Run, long_talk: Path) -> None:
    told = run(*PI, "--json").json

    assert told["calls"] == len(told["sent"])
    assert told["tokens"] == sum(sent["tokens"] for sent in told["sent"])
    assert told["compactions"] == sum(len(sent["compacted"]) for sent in told["sent"])
    assert [sent["call"] for sent in told["sent"]] == list(range(1, told["calls"] + 1))


def test_nothing_is_left_behind_that_was_not_asked_for(run: Run, long_talk: Path) -> None:
    before = run("sessions", "--json").json

    run(*PI)

    assert run("sessions", "--json").json == before


def test_a_lineage_and_a_file_are_there_when_asked_for(
    run: Run, long_talk: Path, tmp_path: Path
) -> None:
    file = tmp_path / "views.jsonl"

    answer = run(*PI, "--lineage", "what-if", "--dump-views", file)

    assert answer.code == 0
    assert "as the lineage what-if" in answer.out
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    told = run(*PI, "--json").json
    assert [line["tokens"] for line in lines] == [sent["tokens"] for sent in told["sent"]]
    assert run("view", "long", "--lineage", "what-if").code == 0
    assert run("show", "long", "--lineage", "what-if", "--brief").code == 0
    assert run("verify").code == 0
    again = run(*PI, "--lineage", "what-if")
    assert again.code == 1
    assert again.err.count("\n") == 1
    assert "has a lineage 'what-if' already" in again.err


@on_sqlite
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "pi", "--lineage", "main"], "agents are served main"),
        (["--policy", "pi", "--lineage", "recorded"], "recorded is what took place"),
        (["--policy", "nobody"], "nobody"),
        (["--policy", "pi", "--set", "keep_tokens"], "KEY=VALUE"),
        (["--policy", "pi", "--summariser", "poet"], "poet"),
        (["--policy", "pi", "--summariser", "llm"], "summary.model"),
    ],
)
def test_what_cannot_be_is_one_line(run: Run, long_talk: Path, words: list[str], said: str) -> None:
    answer = run("replay", "long", *words)

    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


@on_sqlite
def test_missing_summaries_are_counted_in_one_line(
    run: Run, long_talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTBANK_SUMMARY_MODEL", "anthropic:claude-haiku-4-5")

    answer = run(*PI, "--summariser", "llm", "--cache", tmp_path / "summaries.db")

    assert answer.code == 1
    assert answer.out == ""
    assert "not in the cache" in answer.err
    assert "`replay --allow-llm` asks it" in answer.err
    assert answer.err.count("\n") == 1

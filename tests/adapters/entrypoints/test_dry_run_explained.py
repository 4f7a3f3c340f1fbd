"""`compact --dry-run` explains the plan: what fires, what was wanted, and what becomes of it."""

from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.runtime.sessions.session_store import open_store

from .conftest import Run

DRY = ("compact", "long", "--set", "keep_tokens=1000", "--dry-run")


def test_the_threshold_is_the_fewest_tokens_at_which_it_fires(run: Run, long_talk: Path) -> None:
    found = run(*DRY, "--json").json["explanation"]
    reserve = found["limit"] - (found["used"] - 1)

    at = ("--set", f"reserve_tokens={reserve}")
    below = ("--set", f"reserve_tokens={reserve - 1}")

    fired, not_fired = (run(*DRY, *words, "--json").json["explanation"] for words in (at, below))
    assert fired["fires"]
    assert fired["threshold"] == found["used"]
    assert not not_fired["fires"]
    assert not_fired["threshold"] == found["used"] + 1


def test_if_due_compacts_at_the_threshold_and_not_before(run: Run, long_talk: Path) -> None:
    words = ("compact", "long", "--set", "keep_tokens=1000", "--if-due")

    early = run(*words, "--json")
    asked = run(*words, "--dry-run")
    due = run(*words, "--limit", "8000", "--json")

    assert (early.code, early.json["compacted"]) == (1, False)
    assert "sees no need" in early.json["reason"]
    assert "it would not fire by itself" in asked.out
    assert (due.code, due.json["compacted"]) == (0, True)
    assert due.json["explanation"] is None
    assert due.json["pricing"] is None


def test_what_leaves_and_what_stays_is_all_of_the_view(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    outcome = run(*DRY, "--json").json
    explained = outcome["explanation"]

    leaves, stays = explained["leaves"], explained["stays"]

    assert sum(share["blocks"] for share in leaves) == handles(outcome["left"])
    assert {share["kind"] for share in leaves} == {"user", "assistant"}
    tokens = sum(share["tokens"] for share in [*leaves, *stays])
    assert tokens == before["tokens"]
    assert explained["wanted"]["cut"] == outcome["first_kept"]
    assert explained["stands_in"] == "summary"
    assert explained["writers"] == ["extractive"]
    said = run(*DRY).out
    assert f"to keep what begins at #{outcome['first_kept']}" in said
    assert "a summary of what leaves" in said
    assert "by extractive; if no summarizer can, rules write it" in said


@pytest.fixture
def parallel(address: str, file: Path) -> Path:
    """A session `reads` whose newest turn is a message of two calls, and their large results."""
    with open_store(address) as store:
        session = store.session("reads")
        session.append(cutbank.Block.user("Read both. " * 300))
        session.append(
            cutbank.ToolCall(tool_call_id="a", name="read", message_id="m"),
            cutbank.ToolCall(tool_call_id="b", name="read", message_id="m"),
            cutbank.ToolResult(tool_call_id="a", content="silt " * 30_000),
            cutbank.ToolResult(tool_call_id="b", content="clay " * 200),
        )
    return file


def test_each_repair_is_told_with_its_rule(run: Run, parallel: Path) -> None:
    words = ("compact", "reads", "--set", "keep_tokens=100", "--limit", "9000", "--dry-run")

    outcome = run(*words, "--json").json

    (repair,) = [one for one in outcome["repairs"] if one["trimmed"]]
    assert handles(repair["trimmed"]) == len(outcome["explanation"]["shortened"]) == 1
    (shorter,) = outcome["explanation"]["shortened"]
    assert shorter["shown"] < shorter["tokens"]
    said = run(*words).out
    assert f"{repair['rule']}: shown shortened: {shorter['handle']}" in said
    assert f"{shorter['tokens']:,} -> {shorter['shown']:,} tokens are shown" in said
    assert "None" not in said


def test_where_no_summary_is_written_it_is_said(run: Run, long_talk: Path) -> None:
    words = ("compact", "long", "--policy", "scored-pruning", "--limit", "14000", "--dry-run")

    outcome = run(*words, "--json").json
    explained = outcome["explanation"]

    assert explained["stands_in"] == "notice"
    assert explained["writers"] == []
    assert explained["wanted"]["cut"] is None
    # The policy is shown that the first prompt is pinned, and does not want it to leave.
    assert outcome["repairs"] == []
    leaves = sum(share["blocks"] for share in explained["leaves"])
    assert handles(explained["wanted"]["drops"]) == leaves
    said = run(*words).out
    assert "a notice that blocks left, and no summary" in said
    assert "to drop" in said
    tunacode = (*words[:3], "tunacode", "--set", "keep_recent_tokens=1000", "--dry-run")
    explained = run(*tunacode, "--json").json["explanation"]
    assert explained["wanted"]["on_failure"] == "unchanged"
    assert "if no summarizer can, nothing changes" in run(*tunacode).out


def handles(ranges: list[list[int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)

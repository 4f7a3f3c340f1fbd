"""Sessions are compacted, tried out, priced and reverted; and the verbs of an agent's loop."""

import json
import re
from pathlib import Path

import pytest

import cutbank
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.policies.catalog import DEFAULT_POLICY
from cutbank.domain.session_events import Usage

from .conftest import Run

COMPACT = ("compact", "long", "--set", "keep_tokens=1000")
DRY = (*COMPACT, "--dry-run")


def count_handles(ranges: list[list[int]]) -> int:
    return sum(last - first + 1 for first, last in ranges)


def test_a_dry_run_records_nothing_and_compact_says_what_it_did(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    tried = run(*DRY, "--json")
    assert "dry run" in run(*DRY).out
    assert run("view", "long", "--json").json == before

    said = run(*COMPACT, "--lineage", "people").out
    answer = run(*COMPACT, "--json")

    outcome = answer.json
    assert (tried.code, tried.json["boundary"], answer.code) == (0, None, 0)
    assert (outcome["compacted"], outcome["policy"]) == (True, DEFAULT_POLICY)
    assert outcome["post_tokens"] < outcome["pre_tokens"]
    assert outcome["left"][0][0] == 4  # after the first prompt, which says the goal
    assert outcome["summary"] == tried.json["summary"] != ""
    assert "compaction 1 on people" in said
    assert "recall" in said


def test_nothing_to_compact_is_answered_with_no(run: Run, talk: Path) -> None:
    answer = run("compact", "talk", "--json")

    assert answer.code == 1
    assert "nothing to compact" in answer.json["error"]
    assert answer.err.startswith("cutbank: nothing to compact")
    assert run("revert", "talk").code == 1


def test_what_is_prepared_is_served_when_it_is_asked_for_and_reverted(
    run: Run, long_talk: Path
) -> None:
    before = run("view", "long", "--json").json

    outcome = run(*COMPACT, "--prepare", "--json").json

    assert run("view", "long", "--json").json["fingerprint"] == before["fingerprint"]
    assert run("sessions", "--json").json[0]["prepared"] == outcome["boundary"]
    assert re.search(r"^prepared +compaction 1$", run("show", "long", "--brief").out, re.MULTILINE)
    served = run("activate", "long", "--json").json
    assert served["boundary"] == outcome["boundary"]
    assert served["tokens"] < served["tokens_before"] == before["tokens"]
    assert run("sessions", "--json").json[0]["prepared"] is None
    assert run("activate", "long").code == 1
    reverted = run("revert", "long", "--json").json
    assert (reverted["reverted"], reverted["boundary"]) == (outcome["boundary"], None)
    assert reverted["tokens"] == before["tokens"] > reverted["tokens_before"]
    assert run("view", "long", "--json").json["fingerprint"] == before["fingerprint"]


def test_if_due_compacts_at_the_threshold_and_not_before(run: Run, long_talk: Path) -> None:
    early = run(*COMPACT, "--if-due", "--json")
    asked = run(*DRY, "--if-due", "--json")
    due = run(*COMPACT, "--if-due", "--limit", "8000", "--json")

    assert (early.code, early.json["compacted"]) == (1, False)
    assert "sees no need" in early.json["reason"]
    assert asked.json["explanation"]["fires"] is False
    assert (due.code, due.json["compacted"]) == (0, True)
    assert (due.json["explanation"], due.json["pricing"]) == (None, None)


def test_a_dry_run_says_when_it_fires_what_leaves_and_what_stays(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    outcome = run(*DRY, "--json").json
    said = run(*DRY).out

    explained = outcome["explanation"]
    leaves, stays = explained["leaves"], explained["stays"]
    assert sum(share["blocks"] for share in leaves) == count_handles(outcome["left"])
    assert {share["kind"] for share in leaves} == {"user", "assistant"}
    assert sum(share["tokens"] for share in [*leaves, *stays]) == before["tokens"]
    assert explained["wanted"]["cut"] == outcome["first_kept"]
    assert (explained["stands_in"], explained["writers"]) == ("summary", ["extractive"])
    assert re.search(r"^summary +by extractive$", said, re.MULTILINE)
    assert re.search(rf"^due +no: {explained['used']:,} of ", said, re.MULTILINE)
    used = explained["used"]
    words = (*DRY, "--set", f"threshold={(used - 1) / explained['limit']}", "--json")
    due = run(*words).json["explanation"]
    assert (explained["fires"], due["fires"], due["threshold"]) == (False, True, used)


def test_each_repair_is_told_with_its_rule(run: Run, address: str) -> None:
    with open_store(address) as store:
        # The newest turn is a message of two calls, and their large results.
        store.session("reads").append(
            cutbank.Block.user("Read both. " * 300),
            *(cutbank.ToolCall(tool_call_id=id, name="read", message_id="m") for id in "ab"),
            cutbank.ToolResult(tool_call_id="a", content="silt " * 30_000),
            cutbank.ToolResult(tool_call_id="b", content="clay " * 200),
        )
    keep = ("--policy", "reserve-headroom", "--set", "keep_tokens=100")
    words = ("compact", "reads", *keep, "--limit", "9000", "--dry-run")

    outcome = run(*words, "--json").json
    said = run(*words).out

    (repair,) = [one for one in outcome["repairs"] if one["trimmed"]]
    (shorter,) = outcome["explanation"]["shortened"]
    assert count_handles(repair["trimmed"]) == 1
    assert f"rule {repair['rule']}, trimmed {shorter['handle']}" in said
    change = f"{shorter['tokens']:,} -> {shorter['shown']:,} tokens"
    assert f"1 result, {change}: {shorter['handle']}" in said


def test_where_no_summary_is_written_it_is_said(run: Run, long_talk: Path) -> None:
    pruning = ("compact", "long", "--policy", "scored-pruning", "--limit", "14000", "--dry-run")
    tunacode = (*pruning[:3], "tunacode", "--set", "keep_recent_tokens=1000", "--dry-run")

    explained = run(*pruning, "--json").json["explanation"]

    assert (explained["stands_in"], explained["writers"]) == ("notice", [])
    assert explained["wanted"]["cut"] is None
    leaves = sum(share["blocks"] for share in explained["leaves"])
    assert count_handles(explained["wanted"]["drops"]) == leaves
    assert run(*tunacode, "--json").json["explanation"]["wanted"]["on_failure"] == "unchanged"


def test_a_dry_run_is_priced_by_the_model_of_the_newest_call(
    run: Run, address: str, long_talk: Path
) -> None:
    of_none = run(*DRY).out
    usage = Usage(input=3, cache_read=12_000, cache_write=1_000, output=300)
    with open_store(address) as store:
        session = store.session("long")
        model = "claude-opus-4-5-20251101"
        session.record_call(session.view(), call_id="c1", model=model, usage=usage)

    pricing = run(*DRY, "--calls", "50", "--json").json["pricing"]
    named = run(*DRY, "--model", "openai:gpt-5.4", "--calls", "1", "--json").json["pricing"]
    unknown = run(*DRY, "--model", "unknown/model", "--json").json["pricing"]

    assert (pricing["model"], pricing["provider"]) == ("claude-opus-4-5", "anthropic")
    # Opus 4.5: $0.50 a million tokens read from the cache, $6.25 written to it.
    assert pricing["saves_per_call_usd"] == round(pricing["saves_tokens"] * 0.5 / 1e6, 6)
    assert pricing["breaks_cache_usd"] == round(pricing["breaks_cache_tokens"] * 5.75 / 1e6, 6)
    assert (pricing["expected_calls"], pricing["is_worthwhile"]) == (50, True)
    assert (named["model"], named["saves_usd"]) == ("gpt-5.4", named["saves_per_call_usd"])
    # Without a known model there are tokens and no money.
    assert "saves $" not in of_none
    assert unknown["saves_tokens"] > 0
    assert (unknown["saves_usd"], unknown["is_worthwhile"]) == (None, None)


def test_prepare_gives_the_request_and_compacts_where_a_recorded_call_says_it_must(
    run: Run, long_talk: Path
) -> None:
    seen = run("prepare", "long", "--as", "anthropic").json
    where = ("--at", str(seen["at"]), "--lineage-version", str(seen["lineage_version"]))

    answer = run("record-call", "long", *where, "--input", "17000", "--output", "5", "--json")
    tight = run("prepare", "long", "--limit", "20000", "--as", "anthropic")

    assert seen["boundary"] is None
    assert (answer.code, answer.json["context"]) == (0, 17_000)
    assert answer.json["fingerprint"] == seen["fingerprint"]
    # By its own estimate the view is far below the threshold, 20,000 less a quarter.
    assert seen["tokens"] < 14_000
    assert (tight.code, tight.json["boundary"]) == (0, 3)
    assert tight.json["tokens"] < seen["tokens"]
    assert tight.json["body"]["messages"][0]["role"] == "user"


def test_an_overflow_is_compacted_once(run: Run, long_talk: Path) -> None:
    message = "prompt is too long: 13000 tokens > 12000 maximum"
    refusal = json.dumps({"error": {"type": "invalid_request_error", "message": message}})

    first = run("overflowed", "long", refusal, "--json")
    second = run("overflowed", "long", refusal, "--json")

    assert (first.code, second.code) == (0, 1)
    assert first.json["boundary"] is not None
    assert "too long for its model (13,000 of 12,000 tokens)" in second.json["error"]


def test_the_meter_says_how_full_a_context_is(run: Run, long_talk: Path) -> None:
    whole = run("meter", "long", "--json").json
    tokens = whole["tokens"]
    assert whole["user_tokens"] + whole["assistant_tokens"] == tokens
    assert (whole["tool_result_tokens"], whole["notice"]) == (0, None)
    # All colors and levels are those of the policy's document, which has tests of its own.
    for part, color, level in ((0.4, "green", "Normal"), (0.95, "red", "Critical")):
        limit = int(tokens / part)

        lines = run("meter", "long", "--limit", str(limit)).out.splitlines()
        found = run("meter", "long", "--limit", str(limit), "--json").json

        assert (found["level"], found["colour"]) == (level, color)
        assert found["utilisation"] == pytest.approx(tokens / limit, abs=1e-3)
        assert lines[0].endswith(f"{tokens / limit:.1%}, {level}")
        assert lines[0].count("#") == int(40 * tokens / limit)
        assert lines[1] == f"{tokens:,} of {limit:,} tokens are in use (limit as given)"


@pytest.mark.claim("S1.29")
def test_after_a_pruning_it_says_how_much_left(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    reserves = ("--set", "reserved_system_tokens=0", "--set", "reserved_response_tokens=0")

    done = run("compact", "long", "--policy", "qbit", "--limit", "12000", *reserves)

    assert done.code == 0
    # One message of the view is the one that says so.
    removed = len(before["messages"]) - (len(run("view", "long", "--json").json["messages"]) - 1)
    notice = run("meter", "long", "--json").json["notice"]
    assert notice == f"Context Pruned: Removed {removed} old messages to stay within context limits"
    assert run("meter", "long").out.splitlines()[-1] == notice

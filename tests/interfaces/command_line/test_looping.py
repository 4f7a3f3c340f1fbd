"""The verbs of an agent's loop, and the meter for status bars."""

import json
from pathlib import Path

import pytest

from .conftest import Run


def test_prepare_gives_the_request_and_compacts_where_it_must(run: Run, long_talk: Path) -> None:
    roomy = run("prepare", "long", "--as", "anthropic")
    tight = run("prepare", "long", "--limit", "9000", "--as", "anthropic")

    assert roomy.code == tight.code == 0
    assert (roomy.json["boundary"], tight.json["boundary"]) == (None, 3)
    assert tight.json["tokens"] < roomy.json["tokens"]
    assert tight.json["body"]["messages"][0]["role"] == "user"


def test_a_recorded_call_is_counted_upon(run: Run, long_talk: Path) -> None:
    seen = run("prepare", "long", "--json").json
    where = ("--at", str(seen["at"]), "--lineage-version", str(seen["lineage_version"]))

    answer = run("record-call", "long", *where, "--input", "17000", "--output", "5", "--json")

    assert (answer.code, answer.json["context"]) == (0, 17_000)
    assert answer.json["fingerprint"] == seen["fingerprint"]
    # By its own estimate the view is far below the threshold, 20,000 less a quarter.
    assert seen["tokens"] < 14_000
    assert run("prepare", "long", "--limit", "20000", "--json").json["boundary"] is not None


def test_an_overflow_is_compacted_once(run: Run, long_talk: Path) -> None:
    message = "prompt is too long: 13000 tokens > 12000 maximum"
    refusal = json.dumps({"error": {"type": "invalid_request_error", "message": message}})

    first = run("overflowed", "long", refusal, "--json")
    second = run("overflowed", "long", refusal, "--json")

    assert (first.code, second.code) == (0, 1)
    assert first.json["boundary"] is not None
    assert "too long for its model (13,000 of 12,000 tokens)" in second.json["error"]


LEVELS = [
    (0.4, "green", "Normal"),
    (0.6, "yellow", "Normal"),
    (0.76, "orange", "Warning"),
    (0.84, "orange", "Alert"),
    (0.95, "red", "Critical"),
]


def test_the_meter_says_how_full_a_context_is(run: Run, long_talk: Path) -> None:
    whole = run("meter", "long", "--json").json
    tokens = whole["tokens"]
    assert whole["user_tokens"] + whole["assistant_tokens"] == tokens
    assert (whole["tool_result_tokens"], whole["notice"]) == (0, None)
    for part, color, level in LEVELS:
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

"""The verbs of an agent's loop, and the meter for status bars."""

import json
from pathlib import Path

import pytest

from .conftest import Run

TOO_LONG = json.dumps(
    {
        "error": {
            "type": "invalid_request_error",
            "message": "prompt is too long: 13000 tokens > 12000 maximum",
        }
    }
)


def test_prepare_gives_the_request_and_compacts_where_it_must(run: Run, long_talk: Path) -> None:
    roomy = run("prepare", "long", "--as", "anthropic")
    tight = run("prepare", "long", "--limit", "9000", "--as", "anthropic")

    assert roomy.code == tight.code == 0
    assert roomy.json["boundary"] is None
    assert tight.json["boundary"] == 3
    assert tight.json["tokens"] < roomy.json["tokens"]
    assert tight.json["body"]["messages"][0]["role"] == "user"


def test_a_recorded_call_is_counted_upon(run: Run, long_talk: Path) -> None:
    seen = run("prepare", "long", "--json").json
    where = ("--at", str(seen["at"]), "--lineage-version", str(seen["lineage_version"]))

    answer = run("record-call", "long", *where, "--input", "17000", "--output", "5", "--json")

    assert answer.code == 0
    assert answer.json["context"] == 17_000
    assert answer.json["fingerprint"] == seen["fingerprint"]
    # By its own estimate the view is far below the threshold, 20,000 less a quarter.
    assert seen["tokens"] < 14_000
    assert run("prepare", "long", "--limit", "20000", "--json").json["boundary"] is not None


def test_an_overflow_is_compacted_once(run: Run, long_talk: Path) -> None:
    first = run("overflowed", "long", TOO_LONG, "--json")
    second = run("overflowed", "long", TOO_LONG, "--json")

    assert first.code == 0
    assert first.json["boundary"] is not None
    assert second.code == 1
    assert "too long for its model (13,000 of 12,000 tokens)" in second.json["error"]


def test_the_meter_says_how_full_a_context_is(run: Run, long_talk: Path) -> None:
    tokens = run("meter", "long", "--json").json["tokens"]

    answer = run("meter", "long", "--limit", str(2 * tokens), "--json").json

    assert answer["utilisation"] == 0.5
    assert (answer["level"], answer["colour"]) == ("Normal", "yellow")
    assert answer["user_tokens"] + answer["assistant_tokens"] == tokens
    assert answer["tool_result_tokens"] == 0
    assert answer["notice"] is None


def test_each_level_is_one_word_and_has_its_colour(run: Run, long_talk: Path) -> None:
    rows = [
        (0.4, "green", "Normal"),
        (0.6, "yellow", "Normal"),
        (0.76, "orange", "Warning"),
        (0.84, "orange", "Alert"),
        (0.95, "red", "Critical"),
    ]
    tokens = run("meter", "long", "--json").json["tokens"]
    for part, colour, level in rows:
        limit = int(tokens / part)

        lines = run("meter", "long", "--limit", str(limit)).out.splitlines()

        assert lines[0].endswith(f"{tokens / limit:.1%}, {level}")
        assert run("meter", "long", "--limit", str(limit), "--json").json["colour"] == colour
        assert lines[0].count("#") == int(40 * tokens / limit)
        assert lines[1] == f"{tokens:,} of {limit:,} tokens are in use (limit as given)"


@pytest.mark.claim("S1.29")
def test_after_a_pruning_it_says_how_much_left(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    reserves = ("--set", "reserved_system_tokens=0", "--set", "reserved_response_tokens=0")

    done = run("compact", "long", "--policy", "qbit", "--limit", "12000", *reserves)

    assert done.code == 0
    left = len(run("view", "long", "--json").json["messages"])
    notice = run("meter", "long", "--json").json["notice"]
    # What says so is a message of the view.
    removed = len(before["messages"]) - (left - 1)
    assert notice == f"Context Pruned: Removed {removed} old messages to stay within context limits"
    assert run("meter", "long").out.splitlines()[-1] == notice

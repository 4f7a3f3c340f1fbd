"""The verbs of an agent's loop: as in Python, for whatever can start a program."""

import json
from pathlib import Path

from .conftest import Refusals, Run, answered_wrongly

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


def test_what_is_no_refusal_for_length_or_no_format_is_refused_and_nothing_recorded(
    run: Run, long_talk: Path
) -> None:
    where = ["--at", "2", "--lineage-version", "0"]
    wrong: Refusals = [
        (["overflowed", "long", "rate limit exceeded: 429"], "no refusal for length: rate limit"),
        (["record-call", "long", *where, "--as", "latin"], "no format 'latin'"),
    ]

    assert not answered_wrongly(run, wrong)
    assert run("view", "long", "--json").json["boundary"] is None

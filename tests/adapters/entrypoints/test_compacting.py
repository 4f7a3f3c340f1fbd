"""A session can be compacted, tried out and reverted, by any policy."""

from pathlib import Path

from cutbank.domain.policies.catalog import DEFAULT_POLICY

from .conftest import Run

KEEP = ("--set", "keep_tokens=1000")


def test_compact_says_what_it_did(run: Run, long_talk: Path) -> None:
    said = run("compact", "long", *KEEP, "--lineage", "people").out
    answer = run("compact", "long", *KEEP, "--json")

    outcome = answer.json
    assert answer.code == 0
    assert outcome["compacted"]
    assert outcome["policy"] == DEFAULT_POLICY
    assert outcome["post_tokens"] < outcome["pre_tokens"]
    assert outcome["left"][0][0] == 4  # after the first prompt, which says the goal
    assert outcome["summary"]
    assert "compaction 1 on people" in said
    assert "recall" in said


def test_a_dry_run_records_nothing(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json

    answer = run("compact", "long", *KEEP, "--dry-run", "--json")

    assert answer.code == 0
    assert answer.json["summary"]
    assert answer.json["boundary"] is None
    assert run("view", "long", "--json").json == before
    assert "dry run" in run("compact", "long", *KEEP, "--dry-run").out


def test_nothing_to_compact_is_answered_with_no(run: Run, talk: Path) -> None:
    answer = run("compact", "talk", "--json")

    assert answer.code == 1
    assert "nothing to compact" in answer.json["error"]
    assert answer.err.startswith("cutbank: nothing to compact")
    assert run("revert", "talk").code == 1


def test_revert_brings_the_view_back(run: Run, long_talk: Path) -> None:
    before = run("view", "long", "--json").json
    outcome = run("compact", "long", *KEEP, "--json").json

    reverted = run("revert", "long", "--json").json

    assert reverted["reverted"] == outcome["boundary"]
    assert reverted["boundary"] is None
    assert reverted["tokens"] == before["tokens"] > reverted["tokens_before"]
    assert run("view", "long", "--json").json["fingerprint"] == before["fingerprint"]


def test_what_is_prepared_is_shown_and_served_when_it_is_asked_for(
    run: Run, long_talk: Path
) -> None:
    before = run("view", "long", "--json").json

    outcome = run("compact", "long", *KEEP, "--prepare", "--json").json

    assert run("view", "long", "--json").json["fingerprint"] == before["fingerprint"]
    assert run("sessions", "--json").json[0]["prepared"] == outcome["boundary"]
    assert "compaction 1 is prepared" in run("show", "long", "--brief").out
    served = run("activate", "long", "--json").json
    assert served["boundary"] == outcome["boundary"]
    assert served["tokens"] < served["tokens_before"] == before["tokens"]
    assert run("sessions", "--json").json[0]["prepared"] is None
    assert run("activate", "long").code == 1

"""What happened can be told in full, and what a call was sent can be shown and proved."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cutbank
from cutbank import CompactionOptions
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.projections.rendering.catalog import RENDERERS, render_view

from .conftest import Refusals, Run, answered_wrongly

Story = list[dict[str, Any]]


@pytest.fixture
def served(address: str, long_talk: Path) -> bytes:
    """The session `long`, compacted, with one call that was served: the body that was sent."""
    with open_store(address) as store:
        session = store.session("long")
        options = CompactionOptions(settings={"keep_tokens": "1000"})
        session.compact("reserve-headroom", options=options)
        session.append(cutbank.Block.user("In a word?"))
        view = session.view()
        session.append(cutbank.Block.assistant("Silt."))
        session.record_call(
            view, call_id="c", renderer="anthropic/1", model="a-model", latency_s=1.5, cost_usd=0.25
        )
        return json.dumps(render_view(view, "anthropic")).encode()


def test_the_story_tells_each_event_once_and_in_order(run: Run, served: bytes) -> None:
    whole = run("audit", "long", "--json").json
    story = whole["story"]

    positions = [one["position"] for one in story if one["what"] in {"block", "event"}]
    recorded = [one["recorded"] for one in story if one["what"] == "call" and one["recorded"]]
    assert positions == sorted(positions)
    assert sorted(positions + recorded) == list(range(1, whole["at"] + 1))
    versions = [one["version"] for one in story if one["what"] == "decision"]
    assert versions == list(range(1, whole["lineage_version"] + 1))
    assert [one["number"] for one in story if one["what"] == "call"] == list(range(1, 14))
    assert whole["calls"] == 13


def test_a_story_for_people_says_what_became_of_blocks_and_who_saw_what(
    run: Run, served: bytes
) -> None:
    answer = run("audit", "long")

    assert answer.code == 0
    for pattern in (
        r"#6 user, .*\[summarised by compaction \d+ since #\d+\]",
        r"== compaction \d+: reserve-headroom \(manual\) decides on all .*",
        r"-- call 13 saw main@\d+#\d+: .*; proved --",
        r"    a-model, \$0\.2500, 1\.5 s, sent as anthropic/1, recorded at #.*",
    ):
        assert re.search(f"^{pattern}$", answer.out, re.MULTILINE)
    assert answer.out.endswith("13 calls: 12 reconstructed, 1 proved\n")
    brief = run("audit", "long", "--brief")
    assert len(brief.out.splitlines()) < len(answer.out.splitlines())


def test_a_part_of_the_story_and_one_at_a_coordinate_have_the_fates_of_then(
    run: Run, served: bytes
) -> None:
    whole = run("audit", "long", "--json").json["story"]
    part = run("audit", "long", "--from", "6", "--to", "9", "--json").json["story"]
    then = run("audit", "long", "--at", "9", "--json").json
    before = run("audit", "long", "--lineage-version", "0", "--json").json

    def blocks(story: Story) -> Story:
        return [one for one in story if one["what"] == "block" and 6 <= one["position"] <= 9]

    assert blocks(part) == blocks(whole)
    assert [one["position"] for one in blocks(part)] == [6, 7, 9]
    assert {one["what"] for one in part} == {"block", "event", "call"}
    assert (then["at"], then["boundary"], before["boundary"]) == (9, None, None)
    for story in (then["story"], before["story"]):
        assert {one["fate"] for one in story if one["what"] == "block"} == {"visible"}
    assert max(one.get("position", 0) for one in then["story"]) == 9


def test_a_served_call_is_proved_to_the_byte_and_rendered_as_asked(run: Run, served: bytes) -> None:
    call = run("audit", "long", "--call", "13", "--json").json
    by_record = run("audit", "long", "--call", f"#{call['recorded']}", "--json").json
    by_answer = run("audit", "long", "--call", f"#{call['answer'][0]}", "--json").json
    text = run("audit", "long", "--call", "last").out

    assert (call["proof"], call["why"], call["as_sent"]) == ("proved", None, True)
    assert (call["format"], call["rebuilt"]) == ("anthropic", call["fingerprint"])
    assert json.dumps(call["body"]).encode() == served
    assert by_answer == call
    assert by_record == call | {"number": None, "answer": []}
    assert "\nproved\nthe request in the format anthropic, as it was sent:\n" in text
    assert json.loads(text.splitlines()[-1]) == call["body"]
    for form in RENDERERS:
        other = run("audit", "long", "--call", "13", "--as", form, "--json").json
        assert (other["format"], other["as_sent"]) == (form, form == "anthropic")
        assert other["body"]


def test_a_call_whose_content_was_changed_is_not_equal(run: Run, served: bytes, file: Path) -> None:
    with closing(sqlite3.connect(file)) as tampered, tampered:
        tampered.execute("DROP TRIGGER stored_events_are_immutable")
        tampered.execute(
            "UPDATE stored_events SET state = CAST(replace(CAST(state AS TEXT), 'silt', 'clay')"
            " AS BLOB) WHERE originator_version = 37 AND instr(state, 'Answer 11')"
        )
    page = file.with_suffix(".html")

    one = run("audit", "long", "--call", "13")
    story = run("audit", "long", "--json")
    run("audit", "long", "--html", page)

    why = "#37: its content was changed"
    assert one.code == story.code == 1
    assert f"\nnot equal: {why}\n" in one.out
    (call,) = [entry for entry in story.json["story"] if entry.get("number") == 13]
    assert (call["proof"], call["why"]) == ("not equal", why)
    assert ">not equal<" in page.read_text()
    assert why in page.read_text()


WRONG: Refusals = [
    (["--call", "14"], "has no call 14: they go from 1 to 13"),
    (["--call", "0"], "has no call 0: they go from 1 to 13"),
    (["--call", "9" * 5_000], "is not a call: write 12, last, or '#12'"),
    (["--call", "x"], "'x' is not a call: write 12, last, or '#12'"),
    (["--call", "#3"], "#3 is neither a model's answer nor the record of a call of one"),
    (["--call", "#999"], "#999 does not exist: the session ends at #"),
    (["--call", "1", "--as", "klingon"], "no format 'klingon'; there are neutral, "),
    (["--as", "neutral"], "--as says one call's request: name the call with --call"),
    (["--call", "1", "--brief"], "--call shows one call"),
    (["--from", "999"], "#999 does not exist: the audit ends at #"),
    (["--from", "9", "--to", "3"], "nothing lies between: #9 comes after #3"),
    (["--at", "999"], "has no position 999: it ends at "),
    (["--lineage-version", "999"], "has no version 999: it ends at "),
    (["--lineage", "nowhere"], "has no lineage 'nowhere'"),
    (["--at", "nowhere@1"], "has no lineage 'nowhere'"),
    (["--at", "main#3-9"], "'main#3-9' names no view: write "),
    (["--at", "main@0#3", "--lineage-version", "1"], "remove --lineage-version"),
    (["--at", "main@0#3", "--lineage", "other"], "remove --lineage"),
    (["--html", "page.html", "--at", "3"], "--html shows a whole session"),
]


def test_wrong_options_are_refused_in_one_line(run: Run, served: bytes) -> None:
    run("append", "quiet", "is anybody there?")

    assert not answered_wrongly(run, WRONG, "audit", "long")
    without = [(["--call", call], "'quiet' tells of no call of a model") for call in ("1", "last")]
    assert not answered_wrongly(run, without, "audit", "quiet")
    assert run("audit", "quiet").out.endswith("\n0 calls\n")


def test_the_coordinate_of_a_call_is_understood_wherever_a_view_is_named(
    run: Run, served: bytes
) -> None:
    story = run("audit", "long").out
    found = re.search(r"-- call 13 saw (main@(\d+)#(\d+)): (.*?); proved --", story)
    assert found is not None
    at, version, position, size = found.groups()

    assert run("audit", "long", "--call", "13").out.startswith(f"call 13 saw {at}: {size}\n")
    view = run("view", "long", "--at", at).out
    assert f", as of {at}\n" in view
    assert run("view", "long", "--at", position, "--lineage-version", version).out == view
    assert f"; fates as of {at}\n" in run("audit", "long", "--at", at).out
    same = f"{at} -> {at}\nBoth views are the same."
    assert same in run("diff", "long", "--from", at, "--to", at).out

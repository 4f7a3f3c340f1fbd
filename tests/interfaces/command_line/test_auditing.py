"""`cutbank audit`, `diff` and `lineage`: what happened, what left, and what a call was sent."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import cutbank
from cutbank import Block, CompactionOptions, Draft, Material, ToolCall, ToolResult
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.errors import SummarizerFailedError
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


def test_a_story_for_people_says_what_became_of_blocks_and_who_saw_what(
    run: Run, served: bytes
) -> None:
    answer = run("audit", "long")

    assert answer.code == 0
    for pattern in (
        r"#6 user, .*\[summarized by compaction \d+ since #\d+\]",
        r"== compact boundary: compaction \d+, .*, trigger manual, policy reserve-headroom ==.*",
        r"-- call 13 saw main@\d+#\d+: .*; proved --",
        r"    model a-model, cost \$0\.25, latency s 1\.5, sent as anthropic/1, recorded at #.*",
    ):
        assert re.search(f"^{pattern}$", answer.out, re.MULTILINE)
    assert answer.out.endswith("13 calls: 12 reconstructed, 1 proved\n")
    brief = run("audit", "long", "--brief")
    assert len(brief.out.splitlines()) < len(answer.out.splitlines())


class Away:
    name = "away"

    def summarize(self, material: Material) -> Draft:
        raise SummarizerFailedError("no such model")


def test_each_event_is_told_in_a_line(run: Run, address: str, talk: Path, served: bytes) -> None:
    with open_store(address) as store:
        session = store.session("short")
        session.configure(title="Silt in the harbor")
        blocks = [Block.user("What is silt? " * 99), Block.assistant("Mud. " * 99)]
        session.append(*blocks * 4, Block.user("In a word?"))
        options = CompactionOptions(settings={"keep_tokens": "100"}, summarizers=[Away()])
        session.compact("reserve-headroom", options=options)
        session.log.compactor().decisions.record_failure("no model answered")
    run("pin", "talk", "3")
    run("hide", "talk", "6", "--replacement", "gone")
    run("retract", "talk", "11")
    run("wake", "talk", "--cancel")
    run("revert", "long")

    said = "".join(run("audit", key).out for key in ("short", "talk", "long"))

    for words in (
        "#1 session opened: source claude-code",
        "block pinned: positions #3",
        "blocks hidden: positions #6, replacement gone",
        "blocks retracted: positions #11",
        "wake scheduled\n",
        "== compaction opened: lineage main ==",
        "== compaction requested: trigger manual, policy reserve-headroom, settings ",
        "== boundary activated: compaction 1, effective from 37 ==",
        "== compaction reverted: compaction 1, to all of the log, effective from ",
        "session titled: title Silt in the harbor",
        "stood in extractive",
        "compaction failed: reason no model answered",
    ):
        assert words in said


def test_a_part_of_the_story_and_one_at_a_coordinate_have_the_fates_of_then(
    run: Run, served: bytes
) -> None:
    whole = run("audit", "long", "--json").json["story"]
    part = run("audit", "long", "--from", "6", "--to", "9", "--json").json["story"]
    then = run("audit", "long", "--at", "9", "--json").json
    before = run("audit", "long", "--at", "main@0", "--json").json

    def blocks(story: Story) -> Story:
        return [one for one in story if one["what"] == "block" and 6 <= one["position"] <= 9]

    assert blocks(part) == blocks(whole)
    assert [one["position"] for one in blocks(part)] == [6, 7, 9]
    assert {one["what"] for one in part} == {"block", "event", "call"}
    order = [one.get("event") or one.get("number") for one in whole]
    assert order.index(12) < order.index("CompactBoundary") < order.index(13)
    assert (then["at"], then["boundary"], before["boundary"]) == (9, None, None)
    for story in (then["story"], before["story"]):
        assert {one["fate"] for one in story if one["what"] == "block"} == {"visible"}


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
    assert run("audit", "long", "--call", "1", "--json").json["as_sent"] is False
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
    (["--at", "main@999"], "has no version 999: it ends at "),
    (["--lineage", "nowhere"], "has no lineage 'nowhere'"),
    (["--at", "nowhere@1"], "has no lineage 'nowhere'"),
    (["--at", "main#3-9"], "'main#3-9' names no view: write "),
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
    found = re.search(r"-- call 13 saw (main@\d+#\d+): (.*?); proved --", story)
    assert found is not None
    at, size = found.groups()

    assert run("audit", "long", "--call", "13").out.startswith(f"call 13 saw {at}: {size}\n")
    view = run("view", "long", "--at", at).out
    assert f", as of {at}\n" in view
    assert f"; statuses as of {at}\n" in run("audit", "long", "--at", at).out
    same = f"{at} -> {at}\nBoth views are the same."
    assert same in run("diff", "long", "--from", at, "--to", at).out


COMPACT = ("compact", "long", "--set", "keep_tokens=1000")


def test_what_is_lost_is_said_with_its_handles_and_what_was_used_again_comes_first(
    run: Run, address: str
) -> None:
    paths = "\n".join(f"src/river/arm_{n}/bed_{n}.py" for n in range(600))
    with open_store(address) as store:
        session = store.session("facts")
        session.append(Block.user("What is there?"))
        for n in range(40):
            source = f"tools.look_up(part_{n})" if n < 20 else "tools.list()"
            listing = paths if n == 0 else f"river_bed_{n}()  took 0.{n + 11}s"
            session.append(
                ToolCall(tool_call_id=f"c{n}", name="script", arguments={"source": source}),
                ToolResult(tool_call_id=f"c{n}", content=listing),
            )
        session.append(Block.user("Go on."), Block.assistant("I go on."))
    keep = ("--policy", "reserve-headroom", "--set", "keep_tokens=10")
    run("compact", "facts", *keep, "--set", "summary_tokens=40")
    used = run("diff", "facts", "--json").json["lost"][5]["key"]
    run("append", "facts", "--role", "assistant", f"It is {used}.")

    short, full = run("diff", "facts").out, run("diff", "facts", "--full").out
    lost = run("diff", "facts", "--json").json["lost"]

    assert len(lost) > 100
    assert lost[0]["key"] == used
    minor = {one["key"] for one in lost if one["minor"]}
    assert minor >= {"0.13s", "tools.look_up"}
    assert all(f"\n{fact['fact']}\t{fact['kind']}\t#" in full for fact in lost)
    assert f"lost: {len(lost) - len(minor)} facts nowhere in the new view" in short
    assert f"and {len(lost) - len(minor) - 20} more: --full lists all" in short
    assert not re.search(r"^tools\.look_up\tidentifier", short, re.MULTILINE)
    assert f"left out: {len(minor)} unused numbers and words of tool calls" in short


def test_a_diff_shows_one_compaction_and_a_lineage_all(
    run: Run, address: str, long_talk: Path
) -> None:
    empty = run("lineage", "long")
    assert (empty.code, run("lineage", "long", "--json").json["lineages"]) == (0, [])
    assert "Nothing was compacted in long yet" in empty.out
    run(*COMPACT)
    left = run("diff", "long", "--json").json["left"]
    said = run("diff", "long").out
    assert "compaction 1 on main" in said
    assert f"{len(left)} blocks left" in said
    assert f"\n{left[0]['handle']}\t{left[0]['turn']}\t{left[0]['kind']}\t" in said
    run("append", "long", "more " * 5_000)
    run(*COMPACT)
    run("revert", "long")

    said = run("lineage", "long").out
    boundaries = run("lineage", "long", "--json").json["lineages"][0]["boundaries"]

    for words in ("served from #", "reverted at #", "\tcompaction 1\tthe summary of 1\n"):
        assert words in said
    standings = [(one["compaction"], one["standing"]) for one in boundaries]
    assert standings == [(1, "served"), (2, "reverted")]
    assert run("diff", "long", "2", "--json").json["after"]["compaction"] == 2
    assert said.replace("…", "").isascii()
    assert re.findall(r"^compaction (\d) \[", said, re.MULTILINE) == ["1", "2"]
    assert re.search(r"^builds on +compaction 1$", said, re.MULTILINE)


@pytest.mark.parametrize("verb", ["diff", "lineage", "audit"])
def test_a_page_is_written_beside_the_answer(
    run: Run, long_talk: Path, tmp_path: Path, verb: str
) -> None:
    run(*COMPACT)
    path, other = tmp_path / "page.html", tmp_path / "other.html"

    answer = run(verb, "long", "--html", path)
    again = run(verb, "long", "--html", path)
    as_json = run(verb, "long", "--html", other, "--full", "--json").json

    assert f"wrote {path}" in answer.out
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert again.code == 2
    assert "is there already" in again.err
    assert as_json["page"] == str(other)
    assert other.exists()

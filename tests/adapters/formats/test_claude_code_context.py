"""What left the context of a Claude Code session: compacted, or taken back."""

import copy
import json
from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk, Tell, text, tool_use

from cutbank import SessionStore
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.transcripts.formats.claude_code.compaction import CLEARED
from cutbank.adapters.transcripts.formats.steps import (
    Append,
    Aside,
    Call,
    Compacted,
    Instead,
    Rewind,
    Shortened,
)
from cutbank.domain.compaction_events import Trigger

# Compactions


def test_a_boundary_and_its_summary_are_one_compaction(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"))
    boundary = talk.boundary("manual", postTokens=13_000)
    talk.summary()
    talk.user("on")

    reading = tell(talk)

    assert reading.of(Compacted) == [
        Compacted(
            key=f"{boundary}:compacted",
            trigger=Trigger.MANUAL,
            summary="what was said so far",
            pre_tokens=155_000,
            post_tokens=13_000,
            source_time="2026-01-01T00:00:02.000Z",
        )
    ]
    assert [text for _, text in reading.said] == ["go", "gone", "on"]
    assert reading.outcomes == ["imported"] * 5
    steps = [type(step) for step in reading.steps if isinstance(step, Append | Call | Compacted)]
    assert steps == [Append, Append, Call, Compacted, Append]


def test_what_was_preserved_is_kept(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    head = talk.calls("m1", "t1")
    talk.add("progress", data={})
    result = talk.result("t1")
    tail = talk.add("system", subtype="stop_hook_summary")
    segment = {"headUuid": head, "tailUuid": tail, "anchorUuid": "u7"}
    by_segment, by_uuids = copy.deepcopy(talk), talk
    by_segment.boundary(preservedSegment=segment)
    by_segment.summary()
    by_uuids.boundary(preservedMessages={"uuids": [head], "allUuids": [head, result, tail, "?"]})
    by_uuids.summary()

    for talk in (by_segment, by_uuids):
        (compacted,) = tell(talk).of(Compacted)
        assert compacted.kept == (head, result)
        assert compacted.trigger is Trigger.THRESHOLD


def test_a_summary_without_a_boundary_is_a_compaction(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.summary()

    (compacted,) = tell(talk).of(Compacted)

    assert (compacted.summary, compacted.pre_tokens) == ("what was said so far", None)


def test_a_boundary_that_no_summary_follows_is_a_compaction(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.boundary()
    talk.user("on")

    reading = tell(talk)

    assert [step.summary for step in reading.of(Compacted)] == [None]
    assert [type(step) for step in reading.steps if isinstance(step, Append | Compacted)] == [
        Append,
        Compacted,
        Append,
    ]


def test_a_boundary_at_the_end_of_the_file_waits_for_its_summary(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.boundary()

    reading = tell(talk)

    assert not reading.of(Compacted)
    assert reading.reasons == ["the file ends between a compaction and its summary"]
    assert reading.outcomes == ["imported", "imported"]


def test_what_comes_between_boundary_and_summary_stays(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.boundary()
    file = talk.attach("skill_listing", content="- s")
    talk.summary()

    assert tell(talk).of(Compacted)[0].kept == (file,)


def test_a_partial_compaction_that_names_nothing_is_counted(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.boundary(messagesSummarized=4)
    talk.summary(summarizeMetadata={"messagesSummarized": 4})

    reading = tell(talk)

    assert [step.partial for step in reading.of(Compacted)] == ["what it kept"]
    assert "partial" in reading.reasons[0]


def test_a_summary_of_another_file_is_no_users_word(tell: Tell) -> None:
    talk = Talk()
    talk.boundary()
    talk.summary()

    reading = tell(talk)

    assert not reading.of(Compacted)
    assert reading.said == [("developer", "what was said so far")]


def test_results_that_were_cleared_are_shortened_from_then_on(tell: Tell) -> None:
    talk = Talk()
    talk.calls("m1", "t1")
    result = talk.result("t1", "long")
    image = talk.attach("file", filename="/a", content={"type": "text", "file": {"content": "x"}})
    metadata = {
        "trigger": "manual",
        "preTokens": 90,
        "tokensSaved": 40,
        "compactedToolIds": ["t1", "t7", 3],
        "clearedAttachmentUUIDs": [image],
    }
    micro = talk.add("system", subtype="microcompact_boundary", microcompactMetadata=metadata)

    reading = tell(talk)

    assert reading.of(Shortened) == [
        Shortened(
            key=f"{micro}:shortened",
            trigger=Trigger.MANUAL,
            instead=(Instead(result, CLEARED, "t1"), Instead(image, CLEARED)),
            pre_tokens=90,
            post_tokens=50,
            source_time="2026-01-01T00:00:03.000Z",
        )
    ]
    assert [json.loads(step.raw) for step in reading.of(Aside)] == [talk.entries[-1]]
    assert reading.outcomes == ["imported"] * 4


def test_results_that_were_replaced_show_what_replaced_them(
    tell: Tell, store: SessionStore, tmp_path: Path
) -> None:
    talk = Talk()
    talk.user("go")
    talk.calls("m1", "t1")
    talk.result("t1", "long " * 100)
    replacements = [{"kind": "tool-result", "toolUseId": "t1", "replacement": "<persisted>"}]
    talk.entries.append({"type": "content-replacement", "replacements": replacements})
    talk.user("on")
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk.raw())

    list(import_path(store, path))
    (again,) = import_path(store, path)

    (shortened,) = tell(talk).of(Shortened)
    assert [one.text for one in shortened.instead] == ["<persisted>"]
    view = store.session(SESSION).view(lineage="recorded")
    shown = [entry.shown or entry.block.text for entry in view.entries]
    assert shown == ["go", '{"command":"ls"}', "<persisted>", "on"]
    assert view.summary is None
    assert again.added == 0
    assert verify(store).ok


def test_what_is_shortened_after_a_compaction_leaves_its_summary_as_it_was(
    store: SessionStore, tmp_path: Path
) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"))
    talk.boundary()
    talk.summary()
    talk.calls("m2", "t1")
    talk.result("t1", "long " * 100)
    for _ in range(2):
        metadata = {"compactedToolIds": ["t1"]}
        talk.add("system", subtype="microcompact_boundary", microcompactMetadata=metadata)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(talk.raw())

    (report,) = import_path(store, path)

    view = store.session(SESSION).view(lineage="recorded")
    assert view.summary
    assert view.summary.text == "what was said so far"
    assert [entry.shown or entry.block.text for entry in view.entries] == [
        '{"command":"ls"}',
        CLEARED,
    ]
    assert report.compactions == 1
    assert verify(store).ok


# Rewinds


def test_parallel_calls_make_branches_that_all_stay(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    one = talk.calls("m1", "t1")
    two = talk.calls("m1", "t2")
    three = talk.calls("m1", "t3")
    for call, parent in [("t2", two), ("t1", one), ("t3", three)]:
        talk.result(call, call, parentUuid=parent)
    talk.user("[Request interrupted by user]", parentUuid=talk.entries[5]["uuid"])
    talk.user("on")

    assert not tell(talk).of(Rewind)


def test_a_prompt_that_leaves_out_what_was_said_is_a_rewind(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    answer = talk.says("m1", text("first"))
    hook = talk.attach("skill_listing", content="- s")
    system = talk.add("system", subtype="turn_duration")
    talk.user("wrong turn")
    talk.calls("m2", "t1")
    talk.result("t1")
    talk.user("right turn", parentUuid=system)

    reading = tell(talk)

    assert reading.of(Rewind) == [Rewind("u8:rewind", to=hook)]
    assert reading.live == ["go", "first", "- s", "right turn"]
    assert answer != hook


def test_a_prompt_that_was_taken_back_unanswered_is_a_rewind(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    answer = talk.says("m1", text("gone"))
    talk.user("tpyo")
    talk.user("typo", parentUuid=answer)

    reading = tell(talk)

    assert reading.of(Rewind) == [Rewind("u4:rewind", to=answer)]


def test_a_rewind_to_the_first_prompt_takes_back_everything(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"))
    talk.user("stay", parentUuid=None)

    reading = tell(talk)

    assert reading.of(Rewind) == [Rewind("u3:rewind", to=None)]
    assert reading.live == ["stay"]


def test_where_parents_were_never_kept_nothing_is_a_rewind(tell: Tell) -> None:
    talk = Talk()
    for number in range(4):
        talk.user(f"go {number}", parentUuid=None)
        talk.says(f"m{number}", text("gone"), parentUuid=None)

    assert not tell(talk).of(Rewind)


def test_rewinds_within_rewinds(tell: Tell) -> None:
    talk = Talk()
    one = talk.user("1")
    two = talk.says("m1", text("2"))
    talk.user("3")
    talk.says("m2", text("4"))
    talk.user("3b", parentUuid=two)
    four = talk.says("m3", text("4b"))
    talk.user("5")
    talk.user("5b", parentUuid=four)
    talk.user("2b", parentUuid=one)

    reading = tell(talk)

    assert [step.to for step in reading.of(Rewind)] == [two, four, one]
    assert reading.live == ["1", "2b"]


def test_a_rewind_reopens_and_forgets_calls(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    call = talk.calls("m1", "t1")
    talk.result("t1")
    talk.says("m2", tool_use("t2"))
    talk.user("go back", parentUuid=call)
    talk.result("t1", "a second time")
    talk.calls("m3", "t2")

    reading = tell(talk)

    assert [step.to for step in reading.of(Rewind)] == [call]
    assert not reading.reasons


def test_a_rewind_past_a_compaction_takes_it_back(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    answer = talk.says("m1", text("gone"))
    talk.boundary()
    talk.summary()
    talk.user("on")
    talk.user("back", parentUuid=answer)

    assert [step.to for step in tell(talk).of(Rewind)] == [answer]


def test_what_follows_a_preserved_entry_after_a_compaction_is_no_rewind(tell: Tell) -> None:
    talk = Talk()
    talk.user("go")
    answer = talk.says("m1", text("gone"))
    talk.boundary(preservedMessages={"uuids": [answer]})
    talk.summary()
    talk.user("on", parentUuid=answer)

    assert not tell(talk).of(Rewind)


@pytest.mark.parametrize("parent", ["u3", "u9", "nobody", ""])
def test_odd_parents_are_accepted(tell: Tell, parent: str) -> None:
    talk = Talk()
    talk.user("go")
    talk.says("m1", text("gone"))
    talk.user("on", parentUuid=parent)
    talk.says("m2", text("done"))

    reading = tell(talk)

    assert reading.outcomes == ["imported"] * 4
    assert not reading.of(Rewind)


def test_a_long_tree_of_dead_branches_is_read_in_time(tell: Tell) -> None:
    talk = Talk()
    root = talk.user("go")
    for number in range(3_000):
        talk.user(f"try {number}", parentUuid=root)
        talk.add("progress", data={})

    assert len(tell(talk).of(Rewind)) == 2_999

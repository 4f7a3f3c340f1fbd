"""What left the context of a Claude Code session, compacted or taken back, and what is wrong."""

from pathlib import Path

import pytest
from claude_code_talk import SESSION, Talk, Tell, reading_of, text
from hypothesis import given
from hypothesis import strategies as st
from transcripts import import_path

from cutbank import SessionStore, ToolResult, verify
from cutbank.adapters.transcripts.formats.claude_code.compactions import CLEARED_RESULT_TEXT
from cutbank.adapters.transcripts.formats.steps import Rewind, SessionStart

# Compactions


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
        CLEARED_RESULT_TEXT,
    ]
    assert report.compactions == 1
    assert verify(store).is_ok


# Rewinds


def test_a_long_tree_of_dead_branches_is_read_in_time(tell: Tell) -> None:
    talk = Talk()
    root = talk.user("go")
    for number in range(3_000):
        talk.user(f"try {number}", parentUuid=root)
        talk.add("progress", data={})

    assert len(tell(talk).of(Rewind)) == 2_999


def test_a_resumed_file_is_one_session_under_the_name_of_the_file(tell: Tell) -> None:
    talk = Talk()
    talk.user("go", sessionId="99999999-2222-3333-4444-555555555555")
    talk.user("on")

    assert tell(talk).of(SessionStart) == [SessionStart(SESSION)]


@given(st.permutations(range(6)))
def test_results_pair_wherever_they_stand_among_the_calls_of_their_message(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    talk = Talk()
    talk.user("go")
    calls = [talk.calls("m1", f"t{number}") for number in range(3)]
    for number, call in enumerate(calls):
        talk.result(f"t{number}", f"said {number}", parentUuid=call)
    talk.says("m2", text("done"))
    first, last = talk.entries[0], talk.entries[-1]
    written = [talk.entries[1 + place] for place in order]
    # A model writes its calls one after the other; only results move among them.
    called = iter(talk.entries[1:4])
    among = [next(called) if one["type"] == "assistant" else one for one in written]
    talk.entries = [first, *among, last]

    reading = reading_of(tmp_path_factory.getbasetemp() / "side_by_side.jsonl", talk.raw())

    assert reading.reasons == []
    results = {block.tool_call_id for block in reading.blocks if isinstance(block, ToolResult)}
    assert results == {"t0", "t1", "t2"}
    assert reading.said[-1] == ("assistant", "done")

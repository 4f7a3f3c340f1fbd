"""Plans that leave gaps, or only shorten: the view stays a conversation, and the log whole."""

import pytest
from opened_stores import store_of
from short_sessions import compacted, positions, prunes, shortens

from cutbank import (
    Block,
    BlockKind,
    CompactionOptions,
    Ranges,
    StoredSession,
    ToolCall,
    ToolResult,
    verify,
)
from cutbank.adapters.runtime.compaction.snapshot import read_prepared_view
from cutbank.domain.blocks import AnyBlock
from cutbank.domain.compaction_events import CompactBoundary, Summary
from cutbank.domain.settlement import BlockStatus
from cutbank.projections.block_statuses import compute_status_ranges
from cutbank.projections.rendering.catalog import render_view

TALK = "the words of a turn, which are many " * 20


@pytest.fixture
def talk(session: StoredSession) -> dict[str, int]:
    """Two turns with a call each, then a third; positions by what stands there."""
    blocks: dict[str, AnyBlock] = {
        "prompt": Block.user(TALK),
        "call": ToolCall(tool_call_id="one", name="read"),
        "result": ToolResult(tool_call_id="one", content="a line of output\n" * 300),
        "answer": Block.assistant(TALK),
        "second prompt": Block.user(TALK),
        "second call": ToolCall(tool_call_id="two", name="read"),
        "second result": ToolResult(tool_call_id="two", content="another line\n" * 300),
        "last": Block.user("go on"),
    }
    return {name: session.append(block).last for name, block in blocks.items()}


def summary_of(session: StoredSession) -> Summary:
    """The summary of the view, in a log that holds."""
    assert verify(store_of(session)).is_ok
    summary = session.view().summary
    assert summary is not None
    return summary


def shortened(session: StoredSession) -> CompactBoundary:
    """The boundary of a view that shortens, and has no summary, in a log that holds."""
    view = session.view()
    assert verify(store_of(session)).is_ok
    assert view.summary is None
    assert view.boundary is not None
    return view.boundary


def test_a_line_says_how_many_messages_were_pruned(
    session: StoredSession, talk: dict[str, int]
) -> None:
    outcome = session.compact(prunes(talk["answer"], talk["call"], talk["result"]))

    assert outcome.compacted
    assert outcome.summarizer == "notice"
    assert positions(session.view()) == [
        at for name, at in talk.items() if name not in {"call", "result", "answer"}
    ]
    assert summary_of(session).text == (
        "[Context Pruned: Removed 3 old messages to stay within context limits]"
    )
    assert session.recall(talk["answer"])[0].block.text == TALK
    assert outcome.post_tokens < outcome.pre_tokens


def test_pairs_are_pruned_whole(session: StoredSession, talk: dict[str, int]) -> None:
    outcome = session.compact(prunes(talk["call"], talk["second result"]))

    # The first pair stays for its newest block, the second leaves for its largest.
    (repair,) = outcome.repairs
    assert repair.rule == "whole-groups"
    assert list(repair.stays) == [talk["call"]]
    assert list(repair.leaves) == [talk["second call"]]
    assert positions(session.view()) == [
        at for name, at in talk.items() if name not in {"second call", "second result"}
    ]


def test_what_was_pruned_before_is_counted_on(session: StoredSession, talk: dict[str, int]) -> None:
    session.compact(prunes(talk["answer"]))
    session.compact(prunes(talk["second prompt"]))

    summary = summary_of(session)
    assert "Removed 2 old messages" in summary.text
    assert list(summary.covers & Ranges.of(talk.values())) == [
        talk["answer"],
        talk["second prompt"],
    ]


def test_a_notice_stands_below_the_summary(session: StoredSession, talk: dict[str, int]) -> None:
    compacted(session, talk["second prompt"])
    before = summary_of(session)

    session.compact(prunes(talk["second call"], talk["second result"]))

    after = summary_of(session)
    assert after.text == (
        f"{before.text}\n\n[Context Pruned: Removed 2 old messages to stay within context limits]"
    )
    assert after.summarizer == "notice"


def test_results_are_shortened_without_a_summary(
    session: StoredSession, talk: dict[str, int]
) -> None:
    outcome = session.compact(shortens(talk["result"]))

    assert outcome.compacted
    view = session.view()
    statuses = compute_status_ranges(shortened(session), None, Ranges(), session.position)
    assert statuses[BlockStatus.TRIMMED] == Ranges.of([talk["result"]])
    assert positions(view) == list(talk.values())
    assert f"recall #{talk['result']}" in view.entries[2].text
    # The session goes by its own estimates, so what was promised is what is served.
    assert outcome.post_tokens == pytest.approx(view.tokens, abs=3)
    assert session.recall(talk["result"])[0].block.text == "a line of output\n" * 300


def test_what_is_hidden_is_named_without_a_summary(
    session: StoredSession, talk: dict[str, int]
) -> None:
    session.hide(talk["answer"])

    session.compact(shortens(talk["result"]))

    view = session.view()
    assert view.boundary is not None
    assert talk["answer"] in view.boundary.hidden
    message = render_view(view, "neutral")["messages"][0]
    assert message["kind"] == "summary"
    assert message["hidden"] == f"#{talk['answer']}"
    assert verify(store_of(session)).is_ok


def test_a_prepared_boundary_does_not_fit_once_what_it_hides_is_pinned(
    session: StoredSession, talk: dict[str, int]
) -> None:
    session.hide(talk["answer"])
    session.compact(shortens(talk["result"]), options=CompactionOptions(activate=False))
    compactor, request = session.log.compactor(), session.loop(limit=8_000).request

    def find_misfit() -> str | None:
        snapshot = compactor.take_snapshot(request)
        return read_prepared_view(compactor.reader, snapshot, request).misfit

    assert find_misfit() is None
    session.pin(talk["answer"])
    assert find_misfit() == f"#{talk['answer']} was pinned since it was prepared"


def test_notes_in_front_of_all_stay_where_nothing_leaves(session: StoredSession) -> None:
    note = session.append(Block.note("for people")).last
    session.append(Block.user("go on"), ToolCall(tool_call_id="one", name="read"))
    result = session.append(ToolResult(tool_call_id="one", content="line\n" * 900)).last

    session.compact(shortens(result))

    statuses = compute_status_ranges(shortened(session), None, Ranges(), session.position)
    assert note in statuses[BlockStatus.VISIBLE]


def test_the_summary_stays_where_results_are_shortened(
    session: StoredSession, talk: dict[str, int]
) -> None:
    compacted(session, talk["second prompt"])
    before = summary_of(session)

    session.compact(shortens(talk["second result"]))

    after = summary_of(session)
    for part in ("text", "sections", "digest", "covers"):
        assert getattr(after, part) == getattr(before, part), part


def test_a_giant_result_that_cannot_leave_is_shown_shortened(session: StoredSession) -> None:
    prompt = session.append(Block.user("read it all")).last
    session.append(ToolCall(tool_call_id="one", name="read"))
    giant = session.append(ToolResult(tool_call_id="one", content="endless output\n" * 4_000)).last
    session.pin(prompt)

    outcome = session.compact("reserve-headroom", limit=8_000)

    assert outcome.compacted
    assert outcome.post_tokens < 2_000
    assert [list(repair.trimmed) for repair in outcome.repairs] == [[giant]]
    assert [entry.block.kind for entry in session.view().entries] == [
        BlockKind.USER,
        BlockKind.TOOL_CALL,
        BlockKind.TOOL_RESULT,
    ]
    assert verify(store_of(session)).is_ok

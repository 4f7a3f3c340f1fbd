"""Plans that leave gaps, or only shorten: the view stays a conversation, and the log whole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.blocks import AnyBlock, Kind
from cutbank.domain.compaction_events import Trim
from cutbank.domain.ranges import Ranges
from cutbank.domain.settlement import BlockStatus, find_block_status
from cutbank.domain.window import Plan, Window
from cutbank.projections.rendering.catalog import render_view


@dataclass(frozen=True)
class Prunes:
    """A policy that drops what the test names, and shortens the results that it names."""

    name: ClassVar[str] = "prunes"

    drops: str = ""
    shortens: str = ""

    def plan(self, _: Window) -> Plan | None:
        trims = tuple(Trim(position=int(at), head=100, tail=20) for at in self.shortens.split())
        return Plan(None, "the test wants it", 0, trims, Ranges.of(map(int, self.drops.split())))


def prunes(*drops: int) -> Prunes:
    return Prunes(drops=" ".join(map(str, drops)))


def shortens(position: int) -> Prunes:
    return Prunes(shortens=str(position))


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


def shown(session: StoredSession) -> list[int]:
    return [entry.position for entry in session.view().entries]


def test_what_is_pruned_leaves_gaps_and_a_line_that_says_how_many_messages_left(
    session: StoredSession, talk: dict[str, int], store: SessionStore
) -> None:
    outcome = session.compact(prunes(talk["answer"], talk["call"], talk["result"]))

    assert outcome.compacted
    assert outcome.summarizer == "notice"
    assert shown(session) == [
        at for name, at in talk.items() if name not in {"call", "result", "answer"}
    ]
    view = session.view()
    assert view.summary is not None
    assert view.summary.text == (
        "[Context Pruned: Removed 3 old messages to stay within context limits]"
    )
    assert session.recall(talk["answer"])[0].block.text == TALK
    assert outcome.post_tokens < outcome.pre_tokens
    assert verify(store).is_ok


def test_a_result_that_a_policy_would_orphan_leaves_with_its_call_or_stays_with_it(
    session: StoredSession, talk: dict[str, int]
) -> None:
    outcome = session.compact(prunes(talk["call"], talk["second result"]))

    # The first pair stays for its newest block, the second leaves for its largest.
    assert {"whole-groups"} == {repair.rule for repair in outcome.repairs}
    (repair,) = outcome.repairs
    assert list(repair.stays) == [talk["call"]]
    assert list(repair.leaves) == [talk["second call"]]
    view = shown(session)
    assert {talk["call"], talk["result"]} <= set(view)
    assert not {talk["second call"], talk["second result"]} & set(view)


def test_what_was_pruned_before_is_counted_on(
    session: StoredSession, talk: dict[str, int], store: SessionStore
) -> None:
    session.compact(prunes(talk["answer"]))
    session.compact(prunes(talk["second prompt"]))

    view = session.view()
    assert view.summary is not None
    assert "Removed 2 old messages" in view.summary.text
    assert list(view.summary.covers & Ranges.of(talk.values())) == [
        talk["answer"],
        talk["second prompt"],
    ]
    assert verify(store).is_ok


def test_a_notice_stands_below_the_summary_that_was_there(
    session: StoredSession, talk: dict[str, int], cut: Callable[[int], None]
) -> None:
    cut(talk["second prompt"])
    before = session.view().summary
    assert before is not None

    session.compact(prunes(talk["second call"], talk["second result"]))

    after = session.view().summary
    assert after is not None
    assert after.text == (
        f"{before.text}\n\n[Context Pruned: Removed 2 old messages to stay within context limits]"
    )
    assert after.summarizer == "notice"


def test_results_alone_are_shortened_without_a_summary(
    session: StoredSession, talk: dict[str, int], store: SessionStore
) -> None:
    outcome = session.compact(shortens(talk["result"]))

    assert outcome.compacted
    view = session.view()
    assert view.summary is None
    assert view.boundary is not None
    assert find_block_status(talk["result"], view.boundary, None, Ranges()) is BlockStatus.TRIMMED
    assert [entry.position for entry in view.entries] == list(talk.values())
    entry = next(entry for entry in view.entries if entry.position == talk["result"])
    assert f"recall #{talk['result']}" in entry.text
    # The session goes by its own estimates, so what was promised is what is served.
    assert outcome.post_tokens == pytest.approx(view.tokens, abs=3)
    assert session.recall(talk["result"])[0].block.text == "a line of output\n" * 300
    assert verify(store).is_ok


def test_what_is_hidden_where_results_are_only_shortened_is_named_all_the_same(
    session: StoredSession, talk: dict[str, int], store: SessionStore
) -> None:
    session.hide(talk["answer"])

    session.compact(shortens(talk["result"]))

    view = session.view()
    assert view.boundary is not None
    assert talk["answer"] in view.boundary.hidden
    message = render_view(view, "neutral")["messages"][0]
    assert message["kind"] == "summary"
    assert message["hidden"] == f"#{talk['answer']}"
    assert verify(store).is_ok


def test_notes_in_front_of_all_that_is_sent_stay_where_nothing_leaves(store: SessionStore) -> None:
    session = store.session("with a note")
    note = session.append(Block.note("for people")).last
    session.append(Block.user("go on"), ToolCall(tool_call_id="one", name="read"))
    result = session.append(ToolResult(tool_call_id="one", content="line\n" * 900)).last

    session.compact(shortens(result))

    view = session.view()
    assert view.boundary is not None
    assert view.summary is None
    assert find_block_status(note, view.boundary, None, Ranges()) is BlockStatus.VISIBLE
    assert verify(store).is_ok


def test_the_summary_goes_on_standing_where_results_are_only_shortened(
    session: StoredSession, talk: dict[str, int], cut: Callable[[int], None]
) -> None:
    cut(talk["second prompt"])
    before = session.view().summary

    session.compact(shortens(talk["second result"]))

    after = session.view().summary
    assert before is not None
    assert after is not None
    assert (after.text, after.sections, after.digest) == (
        before.text,
        before.sections,
        before.digest,
    )
    assert list(after.covers) == list(before.covers)


def test_a_giant_result_that_cannot_leave_is_shown_shortened(
    session: StoredSession, store: SessionStore
) -> None:
    prompt = session.append(Block.user("read it all")).last
    session.append(ToolCall(tool_call_id="one", name="read"))
    giant = session.append(ToolResult(tool_call_id="one", content="endless output\n" * 4_000)).last
    session.pin(prompt)

    outcome = session.compact(limit=8_000)

    assert outcome.compacted
    assert outcome.post_tokens < 2_000
    assert [list(repair.trimmed) for repair in outcome.repairs] == [[giant]]
    assert [entry.block.kind for entry in session.view().entries] == [
        Kind.USER,
        Kind.TOOL_CALL,
        Kind.TOOL_RESULT,
    ]
    assert verify(store).is_ok


@pytest.fixture
def cut(session: StoredSession) -> Callable[[int], None]:
    """Compact by a cut, with a summary."""

    @dataclass(frozen=True)
    class Cuts:
        name: ClassVar[str] = "cuts"
        at: int

        def plan(self, _: Window) -> Plan | None:
            return Plan(self.at, "the test wants it", 500)

    def compact(at: int) -> None:
        outcome: Any = session.compact(Cuts(at))
        assert outcome.compacted

    return compact

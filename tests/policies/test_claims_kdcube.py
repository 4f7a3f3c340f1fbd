"""What seed 000 promises, checked on a database, on real plans, and on the original's histories."""

import json
from itertools import product
from typing import Any

import pytest
from agent_talk import FormWriter, full, talk
from dialects import kdcube

from cutbank import (
    Block,
    LoopOptions,
    SessionStore,
    StoredSession,
    ToolCall,
    ToolResult,
    WindowItem,
)
from cutbank.domain.blocks import AnyBlock, BlockKind, Origin
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.policies.reference.kdcube import KdcubeAsShipped
from cutbank.domain.policies.rolling_timeline import RollingTimeline
from cutbank.domain.summaries.kdcube_template import TURN_HEADING, is_turn_start
from cutbank.domain.summaries.summarizer import SummaryPart
from cutbank.domain.window import Window

POLICY = "rolling-timeline"
SHIPPED = "kdcube@as_shipped"
LIMIT = 8_000


def item(block: AnyBlock, position: int = 1) -> WindowItem:
    return WindowItem(position=position, block=block, turn=1, tokens=10)


def entry(kind: BlockKind = BlockKind.NOTE, **known: str) -> Block:
    return Block(kind=kind, text="x", origin=Origin(format="kdcube", entry=json.dumps(known)))


@pytest.mark.claim("S0.13", "S0.25")
def test_of_eight_turns_six_stay_where_they_fit_and_fewer_where_not(store: SessionStore) -> None:
    """The ruling: what is kept has to fit, so that the share decides alone where turns do not."""
    for policy, fits in product((POLICY, SHIPPED), (True, False)):
        session = talk(store.session(f"{policy} {fits}"), 8)
        view = session.view()
        begins = [entry.position for entry in view.entries if entry.block.kind is BlockKind.USER]
        limit = int(view.tokens / 0.95 if fits else view.tokens * 0.7)

        boundary = session.loop(policy=policy, limit=limit).prepare().boundary

        assert boundary is not None, (policy, fits)
        assert (boundary.first_kept == begins[2]) is fits, (policy, fits)
        assert boundary.first_kept >= begins[2], (policy, fits)
        assert session.view().tokens <= limit, (policy, fits)


CANDIDATES: list[tuple[AnyBlock, bool, bool]] = [
    (Block.user("x"), True, True),
    (Block.assistant("x"), True, True),
    (ToolCall(tool_call_id="c", name="t"), True, True),
    (ToolResult(tool_call_id="c"), False, False),
    (Block.thinking("x"), False, False),
    (Block.developer("x"), False, False),
    (entry(type="turn.header", author="system"), True, True),
    (entry(type="conv.range.summary", author="user"), False, False),
    (entry(type="react.notice", author="react"), False, True),
    (entry(type="react.notice", author="Assistant"), True, True),
    (entry(type="react.notice", role="user"), True, True),
    (entry(type="react.artifact", author="tool"), False, False),
    (entry(type="system.message", author="System"), False, False),
    (entry(type="react.thinking"), False, False),
]


@pytest.mark.claim("S0.14", "S0.16")
def test_a_cut_stands_at_messages_and_at_no_result_or_summary() -> None:
    """The first item is what is asked about; else the cut moves on to the prompt behind it."""
    for block, by_text, by_code in CANDIDATES:
        items = (item(Block.user("x"), 1), item(block, 2), item(Block.user("x"), 3))
        window = Window(items=items, after=3, limit=30, trigger=Trigger.MANUAL)
        cut = kdcube.find_cut(RollingTimeline(keep_recent_turns=0, keeps=0.66), window)

        assert cut is not None, block
        # What is no message sticks to what follows it: it stays with the prompt.
        is_message = by_text or block.kind is BlockKind.TOOL_RESULT
        assert (cut.first_kept == 2) is (by_text or not is_message), block
        assert KdcubeAsShipped().is_cut_point(block) is by_code, block


TURN_STARTS: list[tuple[AnyBlock, bool]] = [
    (Block.user("x"), True),
    (Block.assistant("x"), False),
    (ToolCall(tool_call_id="c", name="t"), False),
    (ToolResult(tool_call_id="c"), False),
    (Block.developer("x"), False),
    (entry(type="turn.header", author="system"), True),
    (entry(type="user.prompt"), True),
    (entry(type="user.attachment", author="user"), True),
    (entry(type="react.notice", author="react"), False),
]


@pytest.mark.claim("S0.15")
def test_headers_and_prompts_open_a_turn() -> None:
    for block, opens in TURN_STARTS:
        assert is_turn_start(block) is opens, block


# Split turns


def in_the_middle_of_a_turn(session: StoredSession) -> StoredSession:
    """A whole turn of two blocks, and a long one behind it."""
    talk(session, 1)
    return talk(session, 1, calls=30)


@pytest.mark.claim("S0.17", "S0.18", "S0.38", "S0.42")
def test_the_beginning_of_a_split_turn_is_summed_up_apart(session: StoredSession) -> None:
    before = in_the_middle_of_a_turn(session).view()
    writer = FormWriter()
    loop = session.loop(
        policy=POLICY,
        limit=int(before.tokens / 0.95),
        options=LoopOptions(summarizers=[writer], settings={"keep_recent_turns": 0}),
    )

    view = loop.prepare()

    assert view.boundary is not None
    assert view.summary is not None
    assert view.boundary.split_turn is not None
    assert view.boundary.split_turn.turn == view.entries[-1].turn
    assert [asked.part for asked in writer.requests] == [SummaryPart.HISTORY, SummaryPart.TURN]
    history_items, turn_items = (asked.items for asked in writer.requests)
    assert [item.position for item in history_items] == [e.position for e in before.entries[:2]]
    assert turn_items[0].position == before.entries[2].position
    history, heading, beginning = view.summary.text.partition(TURN_HEADING)
    assert heading
    assert "Summary of the history." in history
    assert "Summary of the turn." in beginning


# What fails


@pytest.mark.claim("S0.50", "S3.33")
def test_where_the_original_had_no_summary_the_view_stays_and_by_default_one_stands_in(
    store: SessionStore,
) -> None:
    """The ruling: the document says nothing of failure, and no view may stay over its limit."""
    for fails, policy in product(SummaryPart, (SHIPPED, POLICY)):

        def answer(part: SummaryPart, fails: SummaryPart = fails) -> str:
            if part is fails:
                raise SummarizerFailedError("no such model")
            return "A summary."

        session = store.session(f"{fails} {policy}")
        before = in_the_middle_of_a_turn(session).view()
        loop = session.loop(
            policy=policy,
            limit=int(before.tokens / 0.95),
            options=LoopOptions(
                settings={"keep_recent_turns": 0}, summarizers=[FormWriter(answer)]
            ),
        )

        view = loop.prepare()

        if policy == SHIPPED:
            assert view.boundary is None, fails
            assert view.entries == before.entries, fails
        else:
            assert view.summary is not None, fails
            assert view.summary.summarizer == "extractive", fails


# The digest


MADE: dict[str, Any] = {
    "artifact_path": "fi:turn_1.files/plan.md",
    "mime": "text/markdown",
    "visibility": "external",
}
MADE |= {"kind": "file", "sources_used": [1, 2]}
HITS = {"hits": [{"turn_id": "turn_0", "snippets": [{"path": "ar:turn_0.x"}]}]}


@pytest.mark.claim("S0.28", "S0.29", "S0.30", "S0.31", "S0.45")
def test_every_summary_carries_the_inventory_of_what_it_stands_for(session: StoredSession) -> None:
    session.append(Block.user("make a plan"))
    at: dict[str, int] = {}
    for tool, arguments, result in (
        ("rendering_tools.write_pdf", {"path": "plan.md"}, json.dumps(MADE)),
        ("react.patch", {"path": "p"}, json.dumps(MADE | {"artifact_path": "fi:p"})),
        ("react.memory_read", {"query": "plans", "top_k": 3}, json.dumps(HITS)),
        ("bash", {"command": "ls"}, "plan.md"),
    ):
        call = ToolCall(tool_call_id=tool, name=tool, arguments=arguments)
        at[tool] = session.append(call).last
        session.append(ToolResult(tool_call_id=tool, content=result))
    answer = session.append(Block.assistant("a long answer " + "x" * 400)).last
    session.hide(answer, replacement="[an answer was here]")

    summary = full(session).loop(policy=POLICY, limit=LIMIT).prepare().summary

    assert summary is not None
    digest = summary.digest
    (plan, patched) = digest.artifacts
    assert (plan.path, plan.mime, plan.visibility) == (
        MADE["artifact_path"],
        "text/markdown",
        "external",
    )
    assert (plan.kind, plan.sources) == ("file", ("1", "2"))
    assert (plan.tool, patched.tool) == ("rendering_tools.write_pdf", "react.patch")
    assert list(digest.commands) == [at["bash"]]
    (read,) = digest.memory_reads
    assert (read.position, read.query, read.hits) == (at["react.memory_read"], "plans", 1)
    assert (read.turns, read.paths) == (("turn_0",), ("ar:turn_0.x",))
    (hidden,) = digest.hidden
    assert (hidden.position, hidden.replacement) == (answer, "[an answer was here]")
    # What a later summary stands for is on top of that.
    talk(session, 30)
    later = session.loop(policy=POLICY, limit=LIMIT).prepare().summary
    assert later is not None
    inventories = [(d.artifacts, d.memory_reads, d.hidden) for d in (later.digest, digest)]
    assert inventories[0] == inventories[1]

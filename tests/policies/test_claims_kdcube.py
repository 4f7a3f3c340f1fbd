"""What seed 000 promises, checked on a database, on real plans, and on the original's histories."""

import json
from dataclasses import dataclass, field
from itertools import product

import pytest
from dialects import kdcube

from cutbank import Block, LoopOptions, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.domain import kdcube_timeline
from cutbank.domain.blocks import AnyBlock, Kind, Origin
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.item import Item
from cutbank.domain.policies.rolling_timeline import RollingTimeline
from cutbank.domain.summaries.kdcube_template import TURN_HEADING, KdcubeTemplate
from cutbank.domain.summaries.summarizer import Draft, Material, SummaryPart
from cutbank.domain.window import Window
from cutbank.projections.rendering.catalog import render_view

POLICY = "rolling-timeline"
SHIPPED = "kdcube@as_shipped"
LIMIT = 8_000


@dataclass
class ByForm:
    """Answers each request that the policy's form makes, and remembers what it was asked."""

    name: str = "by-form"
    fails: frozenset[SummaryPart] = frozenset()
    calls: list[SummaryPart] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def summarize(self, material: Material) -> Draft:
        form = material.template
        assert isinstance(form, KdcubeTemplate)
        texts: dict[SummaryPart, str] = {}
        for asked in form.plan_requests(material):
            self.calls.append(asked.part)
            self.heard.append(form.render_conversation(asked.items))
            if asked.part in self.fails:
                raise SummarizerFailedError("no such model")
            texts[asked.part] = f"Summary of the {asked.part.value}."
        return Draft(form.join_answers(texts, material))


def turn(session: StoredSession, number: int, *, size: int = 400, calls: int = 0) -> None:
    """A prompt, so many calls with their results, and an answer."""
    session.append(Block.user(f"question {number} " + "q" * size))
    for call in range(calls):
        name, message = f"t{number}c{call}", f"t{number}m{call}"
        session.append(
            ToolCall(tool_call_id=name, name="bash", arguments={"c": name}, message_id=message)
        )
        session.append(ToolResult(tool_call_id=name, content="r" * size))
    session.append(Block.assistant(f"answer {number} " + "a" * size))


def turns(session: StoredSession, count: int, *, size: int = 400) -> StoredSession:
    for number in range(count):
        turn(session, number, size=size)
    return session


def over(session: StoredSession) -> StoredSession:
    """A session that takes more than the limit's share, its user waiting."""
    turns(session, 40)
    session.append(Block.user("and now?"))
    return session


def item(block: AnyBlock, position: int = 1) -> Item:
    return Item(position=position, block=block, turn=1, tokens=10)


def entry(kind: Kind = Kind.NOTE, **known: str) -> Block:
    return Block(kind=kind, text="x", origin=Origin(format="kdcube", entry=json.dumps(known)))


def told_to(store: SessionStore) -> list[CompactionEvent]:
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard


# When


@pytest.mark.claim("S0.1", "S0.43")
def test_before_a_call_a_summary_is_inserted_over_the_limit_and_none_under_it(
    store: SessionStore,
) -> None:
    for policy in (POLICY, SHIPPED):
        small, large = store.session(f"small {policy}"), over(store.session(f"large {policy}"))
        turns(small, 3)

        under = small.loop(policy=policy, limit=LIMIT).prepare()
        above = large.loop(policy=policy, limit=LIMIT).prepare()

        assert under.summary is None, policy
        assert under == small.view(), policy
        assert above.summary is not None, policy
        first = render_view(above, "neutral")["messages"][0]
        assert (first["kind"], first["text"]) == ("summary", above.summary.text), policy


# Where


@pytest.mark.claim("S0.13", "S0.25")
def test_of_eight_turns_six_stay_where_they_fit_and_fewer_where_not(store: SessionStore) -> None:
    """The ruling: what is kept has to fit, so that the share decides alone where turns do not."""
    for policy, fits in product((POLICY, SHIPPED), (True, False)):
        session = turns(store.session(f"{policy} {fits}"), 8)
        view = session.view()
        begins = [entry.position for entry in view.entries if entry.block.kind is Kind.USER]
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
        settings = {
            "keep_recent_turns": 0,
            "keeps": 0.66,
            "cuts_at": "blocks",
            "turn_begins": "prompt",
        }

        for boundaries, is_boundary in (("user-and-assistant", by_text), ("any-author", by_code)):
            policy = RollingTimeline(boundaries=boundaries, **settings)  # type: ignore[arg-type]
            cut = kdcube.find_cut(policy, window)
            assert cut is not None, block
            is_bound = is_boundary or block.kind is Kind.TOOL_RESULT
            # What is no message sticks to what follows it: it stays with the prompt.
            stays = is_boundary or not is_bound
            assert (cut.first_kept == 2) is stays, (block, boundaries)


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
        assert kdcube_timeline.is_turn_start(block) is opens, block


# Split turns


def in_the_middle_of_a_turn(session: StoredSession) -> StoredSession:
    turn(session, 0)
    turn(session, 1, calls=30)
    return session


@pytest.mark.claim("S0.17", "S0.18", "S0.38", "S0.42")
def test_the_beginning_of_a_split_turn_is_summed_up_apart(session: StoredSession) -> None:
    in_the_middle_of_a_turn(session)
    writer = ByForm()
    loop = session.loop(
        policy=POLICY,
        limit=int(session.view().tokens / 0.95),
        options=LoopOptions(summarizers=[writer], settings={"keep_recent_turns": 0}),
    )

    view = loop.prepare()

    assert view.boundary is not None
    assert view.summary is not None
    assert view.boundary.split_turn is not None
    assert view.boundary.split_turn.turn == view.entries[-1].turn
    assert writer.calls == [SummaryPart.HISTORY, SummaryPart.TURN]
    assert "question 0" in writer.heard[0]
    assert "question 1" not in writer.heard[0]
    assert "question 1" in writer.heard[1]
    history, heading, beginning = view.summary.text.partition(TURN_HEADING)
    assert heading
    assert "Summary of the history." in history
    assert "Summary of the turn." in beginning


# What fails


@pytest.mark.claim("S0.50")
def test_where_the_original_had_no_summary_the_view_stays(store: SessionStore) -> None:
    for fails in list(SummaryPart):
        session = store.session(f"{fails}")
        before = in_the_middle_of_a_turn(session).view()
        loop = session.loop(
            policy=SHIPPED,
            limit=int(before.tokens / 0.95),
            options=LoopOptions(
                settings={"keep_recent_turns": 0}, summarizers=[ByForm(fails=frozenset({fails}))]
            ),
        )

        view = loop.prepare()

        assert view.boundary is None, fails
        assert view.entries == before.entries, fails


@pytest.mark.claim("S0.50", "S3.33")
def test_by_default_a_failed_summariser_costs_quality_and_no_compaction(
    session: StoredSession,
) -> None:
    """The ruling: the document says nothing of failure, and no view may stay over its limit."""
    loop = over(session).loop(
        policy=POLICY,
        limit=LIMIT,
        options=LoopOptions(summarizers=[ByForm(fails=frozenset(SummaryPart))]),
    )

    view = loop.prepare()

    assert view.summary is not None
    assert view.summary.summarizer == "extractive"


# The digest


ARTIFACT = {
    "artifact_path": "fi:turn_1.files/plan.md",
    "mime": "text/markdown",
    "kind": "file",
    "visibility": "external",
    "sources_used": [1, 2],
}
HITS = {"hits": [{"turn_id": "turn_0", "snippets": [{"path": "ar:turn_0.x"}]}]}


def with_tools(session: StoredSession) -> StoredSession:
    """Tools that make something, run something and remember something, and a hidden answer."""
    session.append(Block.user("make a plan"))
    for call, tool, arguments, result in (
        ("c1", "rendering_tools.write_pdf", {"path": "plan.md"}, json.dumps(ARTIFACT)),
        ("c2", "react.patch", {"path": "p"}, json.dumps(ARTIFACT | {"artifact_path": "fi:p"})),
        (
            "c3",
            "exec_tools.execute_code_python",
            {"code": "1"},
            json.dumps(ARTIFACT | {"artifact_path": "fi:e", "visibility": "internal"}),
        ),
        ("c4", "react.memory_read", {"query": "plans", "top_k": 3}, json.dumps(HITS)),
        ("c5", "bash", {"command": "ls"}, "plan.md"),
    ):
        session.append(ToolCall(tool_call_id=call, name=tool, arguments=arguments))
        session.append(ToolResult(tool_call_id=call, content=result))
    session.append(Block.assistant("a long answer " + "x" * 400))
    session.hide(session.view().entries[-1].position, replacement="[an answer was here]")
    return over(session)


@pytest.mark.claim("S0.28", "S0.29", "S0.30", "S0.31", "S0.45")
def test_every_summary_carries_the_inventory_of_what_it_stands_for(
    session: StoredSession,
) -> None:
    entries = with_tools(session).view().entries
    at = {
        entry.block.tool_call_id: entry.position
        for entry in entries
        if isinstance(entry.block, ToolCall)
    }
    answer = next(entry for entry in entries if entry.text.startswith("a long answer"))

    view = session.loop(policy=POLICY, limit=LIMIT).prepare()

    assert view.summary is not None
    digest = view.summary.digest
    (plan, patched, run) = digest.artifacts
    assert (plan.path, plan.mime, plan.visibility) == (
        ARTIFACT["artifact_path"],
        "text/markdown",
        "external",
    )
    assert (plan.kind, plan.sources) == ("file", ("1", "2"))
    assert [one.tool for one in (plan, patched, run)] == [
        "rendering_tools.write_pdf",
        "react.patch",
        "exec_tools.execute_code_python",
    ]
    assert list(digest.commands) == [at["c5"]]
    (read,) = digest.memory_reads
    assert (read.position, read.query, read.hits) == (at["c4"], "plans", 1)
    assert (read.turns, read.paths) == (("turn_0",), ("ar:turn_0.x",))
    (hidden,) = digest.hidden
    assert (hidden.position, hidden.replacement) == (answer.position, "[an answer was here]")
    # What a later summary stands for is on top of that.
    turns(session, 30)
    later = session.loop(policy=POLICY, limit=LIMIT).prepare().summary
    assert later is not None
    assert later.digest.artifacts == digest.artifacts
    assert later.digest.hidden == digest.hidden


# Hooks


@pytest.mark.claim("S0.32", "S0.33", "S0.34", "S0.35", "S0.36", "S0.37")
def test_hooks_are_called_before_and_after_with_what_was_saved(
    session: StoredSession, store: SessionStore
) -> None:
    """The ruling of 0-a and 0-b: around a compaction, and with the document's four numbers."""
    before = over(session).view()
    heard = told_to(store)

    view = session.loop(policy=POLICY, limit=LIMIT).prepare()

    moments = [happening.moment for happening in heard]
    assert moments.index(CompactionEventKind.PRE_COMPACT) < moments.index(
        CompactionEventKind.SUMMARIZING
    )
    assert moments.index(CompactionEventKind.SUMMARIZED) < moments.index(
        CompactionEventKind.RECORDED
    )
    first = heard[moments.index(CompactionEventKind.PRE_COMPACT)]
    last = heard[moments.index(CompactionEventKind.RECORDED)]
    assert view.boundary is not None
    assert first.before is not None
    assert last.before == first.before
    assert last.after is not None
    gone = [e for e in before.entries if e.position not in view.boundary.kept]
    assert first.compacted_blocks == len(gone)
    assert first.before.summaries == 0
    assert (first.before.tokens, last.after.tokens) == (
        view.boundary.pre_tokens,
        view.boundary.post_tokens,
    )
    assert (last.compacted_blocks, last.after.summaries) == (len(gone), 1)


# Cache points


@pytest.mark.claim("S0.40", "S0.47")
def test_what_a_provider_is_sent_after_a_compaction_has_two_cache_points(
    session: StoredSession,
) -> None:
    view = over(session).loop(policy=POLICY, limit=LIMIT).prepare()

    assert view.summary is not None
    messages = json.dumps(render_view(view, "anthropic-cached")["messages"])
    assert messages.count('"cache_control"') == 2

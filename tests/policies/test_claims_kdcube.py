"""What seed 000 promises, checked on a database, on real plans, and on the original's histories."""

import json
from dataclasses import dataclass, field, replace

import pytest
from dialects import kdcube
from kdcube_vectors import compaction_of, ids, shipped, window_of
from neutral_timeline import timeline_window
from vector_files import FOLDERS, lines_of

import cutbank
from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.domain import kdcube_timeline
from cutbank.domain.blocks import AnyBlock, Kind, Origin
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.cut_points.pair_cuts import without_call
from cutbank.domain.errors import NothingToCompactError, SummariserFailedError
from cutbank.domain.hooks import Happening, Moment
from cutbank.domain.item import Item
from cutbank.domain.overflow.reference_systems import SETS
from cutbank.domain.policies.rolling_timeline import RollingTimeline
from cutbank.domain.settlement import settle
from cutbank.domain.summaries.forms.kdcube import TURN_CONTEXT, KdcubeForm
from cutbank.domain.summaries.summarizer import Draft, Material, Part
from cutbank.domain.window import Window
from cutbank.projections.rendering.cache_points import cache_points
from cutbank.projections.rendering.catalog import render

POLICY = "rolling-timeline"
SHIPPED = "kdcube@as_shipped"
LIMIT = 8_000
TOO_LONG = {"error": {"message": "input too long: the maximum context is 8000 tokens"}}


@dataclass
class ByForm:
    """Answers each request that the policy's form makes, and remembers what it was asked."""

    name: str = "by-form"
    fails: frozenset[Part] = frozenset()
    calls: list[Part] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)

    def summarise(self, material: Material) -> Draft:
        form = material.form
        assert isinstance(form, KdcubeForm)
        texts: dict[Part, str] = {}
        for asked in form.asked(material):
            self.calls.append(asked.part)
            self.heard.append(form.said(asked.items))
            if asked.part in self.fails:
                raise SummariserFailedError("no such model")
            texts[asked.part] = f"Summary of the {asked.part.value}."
        return Draft(form.joined(texts, material))


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


def told_to(store: SessionStore) -> list[Happening]:
    heard: list[Happening] = []
    store.listeners.append(heard.append)
    return heard


# When


@pytest.mark.claim("S0.1", "S0.43")
@pytest.mark.parametrize("policy", [POLICY, SHIPPED])
def test_before_a_call_a_summary_is_inserted_over_the_limit_and_none_under_it(
    store: SessionStore, policy: str
) -> None:
    small, large = store.session("small"), over(store.session("large"))
    turns(small, 3)

    under = small.loop(policy=policy, limit=LIMIT).prepare()
    above = large.loop(policy=policy, limit=LIMIT).prepare()

    assert under.summary is None
    assert under == small.view()
    assert above.summary is not None
    assert above.boundary is not None
    assert above.boundary.policy == POLICY


@pytest.mark.claim("S0.21", "S0.22")
@pytest.mark.parametrize("unit", ["code-points", "reckoned"])
@pytest.mark.parametrize(("in_use", "fires"), [(899, False), (900, False), (901, True)])
def test_it_fires_above_nine_tenths_and_not_at_them(unit: str, in_use: int, fires: bool) -> None:
    # Of the system prompt's 402 characters 100 tokens count.
    block = Block.user("x" * 4 * (in_use - 100))
    items = (Item(position=1, block=block, turn=1, tokens=in_use - 100),)
    window = Window(
        items=items,
        after=1,
        limit=1_000,
        trigger=Trigger.THRESHOLD,
        overhead=100,
        system="s" * 402,
    )
    policy = RollingTimeline(unit=unit)

    assert policy.sizes.besides(window) == 100
    assert policy.sizes.total(window) == in_use
    assert policy.fires(window) is fires


@pytest.mark.claim("S0.21")
def test_even_an_empty_system_prompt_counts_as_one_token() -> None:
    window = Window(items=(), after=0, limit=1_000)

    assert RollingTimeline(unit="code-points").sizes.besides(window) == 1


@pytest.mark.claim("S0.5", "S0.6")
def test_a_refused_request_is_compacted_and_sent_once_more(session: StoredSession) -> None:
    turns(session, 15)
    session.append(Block.user("and now?"))
    # By the limit that the agent knows, nothing needs to leave.
    loop = session.loop(policy=POLICY, limit=200_000)
    sent = []

    def call() -> str:
        """What an agent does: prepare, send, and once more after a refusal."""
        view = loop.prepare()
        sent.append(view)
        if len(sent) == 1:
            assert SETS["kdcube"](TOO_LONG["error"]["message"])
            sent.append(loop.overflowed(TOO_LONG))
        return "an answer"

    assert call() == "an answer"
    first, second = sent
    assert first.summary is None
    assert second.boundary is not None
    assert second.boundary.trigger is Trigger.OVERFLOW
    assert second.tokens < first.tokens


@pytest.mark.claim("S0.6")
@pytest.mark.parametrize("policy", [POLICY, SHIPPED])
def test_what_is_forced_is_compacted_below_the_threshold(
    session: StoredSession, policy: str
) -> None:
    turns(session, 15)
    seen = session.view().tokens

    view = session.loop(policy=policy, limit=int(seen / 0.8)).prepare()
    outcome = session.compact(policy, limit=int(seen / 0.8), settings={"keep_recent_turns": 0})

    assert view.summary is None
    assert outcome.compacted


# Where


@pytest.mark.claim("S0.12", "S0.23", "S0.24")
@FOLDERS
def test_seven_tenths_stay_of_what_the_system_prompt_leaves(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        window = replace(window_of(vector), trigger=Trigger.MANUAL)
        policy = replace(shipped(vector), keep_recent_turns=0)
        cut = policy.cut(window)
        if cut is None:
            assert not window.open_to_cut, vector["vector"]
            continue
        room = max(1, window.limit - max(1, vector["config"]["system_chars"] // 4))
        assert cut.keep == max(1, int(room * 0.7)), vector["vector"]
        summaries = [at for at, block in enumerate(vector["input"]) if block["kind"] == "summary"]
        assert cut.begins == (summaries[-1] + 2 if summaries else 1), vector["vector"]


def eight_turns(session: StoredSession) -> list[int]:
    """Eight turns of a prompt and an answer, 200 tokens or so each; where they begin."""
    turns(session, 8)
    return [entry.position for entry in session.view().entries if entry.block.kind is Kind.USER]


@pytest.mark.claim("S0.13", "S0.25")
@pytest.mark.parametrize("policy", [POLICY, SHIPPED])
def test_of_eight_turns_six_stay_where_they_fit(session: StoredSession, policy: str) -> None:
    begins = eight_turns(session)
    limit = int(session.view().tokens / 0.95)

    assert RollingTimeline().keep_recent_turns == 6
    view = session.loop(policy=policy, limit=limit).prepare()

    assert view.boundary is not None
    assert view.boundary.first_kept == begins[2]


@pytest.mark.claim("S0.25")
@pytest.mark.parametrize("policy", [POLICY, SHIPPED])
def test_recent_turns_that_do_not_fit_are_not_kept_whole(
    session: StoredSession, policy: str
) -> None:
    """The ruling: what is kept has to fit, so that the share decides alone where turns do not."""
    begins = eight_turns(session)
    limit = int(session.view().tokens * 0.7)

    view = session.loop(policy=policy, limit=limit).prepare()

    assert view.boundary is not None
    assert view.boundary.first_kept > begins[2]
    assert view.tokens <= limit


@pytest.mark.claim("S0.25")
def test_the_text_keeps_recent_turns_before_it_is_ruled(session: StoredSession) -> None:
    items = tuple(
        Item(position=at, block=Block.user("x" * 400), turn=at, tokens=100) for at in range(1, 9)
    )
    window = Window(items=items, after=8, limit=500)
    by_text, by_code = (
        RollingTimeline().cut(window),
        RollingTimeline(protects="if-it-fits").cut(window),
    )

    assert by_text is not None
    assert by_code is not None
    assert (by_text.keep, by_text.first_kept) == (600, 3)
    assert (by_code.keep, by_code.first_kept) == (350, 5)


CANDIDATES = [
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
@pytest.mark.parametrize(("block", "by_text", "by_code"), CANDIDATES)
def test_a_cut_stands_at_messages_and_at_no_result_or_summary(
    block: AnyBlock, by_text: bool, by_code: bool
) -> None:
    """The first item is what is asked about; else the cut moves on to the prompt behind it."""
    items = (item(Block.user("x"), 1), item(block, 2), item(Block.user("x"), 3))
    window = Window(items=items, after=3, limit=30, trigger=Trigger.MANUAL)
    settings = {"keep_recent_turns": 0, "keeps": 0.66, "cuts_at": "blocks", "turn_begins": "prompt"}

    for boundaries, is_boundary in (("user-and-assistant", by_text), ("any-author", by_code)):
        policy = RollingTimeline(boundaries=boundaries, **settings)  # type: ignore[arg-type]
        cut = policy.cut(window)
        assert cut is not None
        is_bound = is_boundary or block.kind is Kind.TOOL_RESULT
        # What is no message sticks to what follows it: it stays with the prompt.
        stays = is_boundary or not is_bound
        assert (cut.first_kept == 2) is stays, boundaries


@pytest.mark.claim("S0.14")
def test_where_no_message_follows_any_block_but_a_result_will_do() -> None:
    items = (
        item(Block.user("x"), 1),
        item(Block.assistant("x"), 2),
        item(Block.thinking("x"), 3),
    )
    window = Window(items=items, after=3, limit=14, trigger=Trigger.MANUAL)

    cut = RollingTimeline(keep_recent_turns=0).cut(window)

    assert cut is not None
    assert cut.first_kept == 3


TURN_STARTS = [
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
@pytest.mark.parametrize(("block", "opens"), TURN_STARTS)
def test_headers_and_prompts_open_a_turn(block: AnyBlock, opens: bool) -> None:
    assert kdcube_timeline.opens_turn(block) is opens


@pytest.mark.claim("S0.7", "S0.46")
@FOLDERS
@pytest.mark.parametrize("preset", ["", "@as_shipped"])
def test_what_is_kept_never_begins_with_a_result_nor_holds_one_without_its_call(
    folder: str, preset: str
) -> None:
    """The ruling of 0-d: the store moves a cut that parts parallel calls from their results."""
    planned, parted = 0, 0
    for vector in lines_of(folder, "kdcube"):
        window = window_of(vector)
        sizes = RollingTimeline(unit="code-points")
        items = [
            replace(i, tokens=n)
            for i, n in zip(window.items, sizes.sizes.sizes(window.items), strict=True)
        ]
        asked = {
            item.block.tool_call_id: item.position
            for item in items
            if isinstance(item.block, ToolCall)
        }
        window = replace(
            window,
            items=tuple(
                replace(i, call=asked.get(i.block.tool_call_id))
                if isinstance(i.block, ToolResult)
                else i
                for i in items
            ),
        )
        policy = shipped(vector) if preset else RollingTimeline()
        try:
            plan = policy.plan(window)
            if plan is None:
                continue
            settlement = settle(window, plan)
        except NothingToCompactError:
            continue
        planned += 1
        parted += bool(settlement.repairs)
        kept = [i for i in window.items if i.position in settlement.kept]
        first = next(i for i in window.items if i.position == settlement.first_kept)
        strays = {i.position for i in without_call(window.items)}
        assert first.kind is not Kind.TOOL_RESULT or first.position in strays, vector["vector"]
        assert {i.position for i in without_call(kept)} <= strays, vector["vector"]
    assert planned
    assert parted or not preset


@pytest.mark.claim("S0.49")
@FOLDERS
def test_where_the_original_found_no_safe_cut_the_store_finds_a_smaller_view(folder: str) -> None:
    """The ruling of 0-e: a raw cut that takes nothing out is answered by the cut that was meant."""
    unchanged = 0
    for vector in lines_of(folder, "kdcube"):
        if vector["scenario"] != "giant_last_result" or not vector["expected"]["trigger"]:
            continue
        compaction, window = compaction_of(vector), window_of(vector)
        if compaction.summary is not None or vector["config"]["force"]:
            continue
        assert ids(compaction.blocks, vector["input"]) == [b["id"] for b in vector["input"]]
        unchanged += 1
        plan = shipped(vector).plan(window)
        assert plan is not None
        assert plan.cut is not None, vector["vector"]
    assert unchanged


# What is put in its place


@pytest.mark.claim("S0.2", "S0.9", "S0.11", "S0.19", "S0.27", "S0.41", "S0.44")
@FOLDERS
def test_one_summary_is_inserted_at_the_cut_and_nothing_leaves_the_memory(folder: str) -> None:
    in_the_middle, after_another = 0, 0
    for vector in lines_of(folder, "kdcube"):
        before, compaction = kdcube.in_memory(window_of(vector)), compaction_of(vector)
        if compaction.cut is None or compaction.summary is None:
            assert compaction.blocks == before, vector["vector"]
            continue
        at = next(i for i, one in enumerate(before) if one.position == compaction.cut.first_kept)
        blocks = compaction.blocks
        assert (blocks[:at], blocks[at + 1 :]) == (before[:at], before[at:]), vector["vector"]
        assert kdcube_timeline.is_summary(blocks[at].block)
        assert blocks[at].block.text == compaction.summary["text"]
        in_the_middle += at > 0
        earlier = [i for i, one in enumerate(before) if kdcube_timeline.is_summary(one.block)]
        after_another += bool(earlier)
        assert all(i < at and blocks[i] == before[i] for i in earlier), vector["vector"]
    assert in_the_middle
    assert after_another


@pytest.mark.claim("S0.3", "S0.10", "S0.11", "S0.41")
def test_a_view_begins_with_the_newest_summary_and_the_log_keeps_what_left(
    session: StoredSession,
) -> None:
    before = over(session).view()

    view = session.loop(policy=POLICY, limit=LIMIT).prepare()

    assert view.boundary is not None
    assert view.summary is not None
    first = render(view, "neutral")["messages"][0]
    assert (first["kind"], first["text"]) == ("summary", view.summary.text)
    assert min(entry.position for entry in view.entries) == view.boundary.first_kept
    left = [entry for entry in before.entries if entry.position < view.boundary.first_kept]
    assert left
    (recalled,) = session.recall(left[0].position)
    assert recalled.block == left[0].block


@pytest.mark.claim("S0.4", "S0.39")
def test_whoever_comes_next_begins_with_the_summary(database: str) -> None:
    with cutbank.open(database) as store:
        view = over(store.session("s")).loop(policy=POLICY, limit=LIMIT).prepare()

    with cutbank.open(database) as store:
        session = store.session("s")
        again = session.view()
        assert again == view
        session.append(Block.assistant("done"), Block.user("next"))
        later = session.view()

    assert later.summary == view.summary
    assert later.entries[: len(view.entries)] == view.entries
    assert [entry.text for entry in later.entries[len(view.entries) :]] == ["done", "next"]


@pytest.mark.claim("S0.8")
def test_a_summary_stands_beside_the_log_and_not_in_it(
    session: StoredSession, store: SessionStore
) -> None:
    over(session)
    before = store.events.recorder.select_events(session.id)

    view = session.loop(policy=POLICY, limit=LIMIT).prepare()

    assert view.summary is not None
    assert store.events.recorder.select_events(session.id) == before
    assert view.summary.originator_id != session.id


@pytest.mark.claim("S0.8")
@FOLDERS
def test_what_is_saved_of_a_summary_is_handed_over_once_and_only_then(folder: str) -> None:
    for vector in lines_of(folder, "kdcube"):
        compaction = compaction_of(vector)
        assert (compaction.payload is None) == (compaction.summary is None)
        if compaction.payload is not None and compaction.summary is not None:
            assert compaction.payload["summary"] == compaction.summary["text"]


# Split turns


def in_the_middle_of_a_turn(session: StoredSession) -> StoredSession:
    turn(session, 0)
    turn(session, 1, calls=30)
    return session


@pytest.mark.claim("S0.17", "S0.18", "S0.38", "S0.42")
@pytest.mark.parametrize("policy", [POLICY, SHIPPED])
def test_the_beginning_of_a_split_turn_is_summed_up_apart(
    session: StoredSession, policy: str
) -> None:
    in_the_middle_of_a_turn(session)
    writer = ByForm()
    loop = session.loop(
        policy=policy,
        limit=int(session.view().tokens / 0.95),
        summarisers=[writer],
        settings={"keep_recent_turns": 0},
    )

    view = loop.prepare()

    assert view.boundary is not None
    assert view.summary is not None
    assert view.boundary.split_turn is not None
    assert view.boundary.split_turn.turn == view.entries[-1].turn
    assert writer.calls == [Part.HISTORY, Part.TURN]
    assert "question 0" in writer.heard[0]
    assert "question 1" not in writer.heard[0]
    assert "question 1" in writer.heard[1]
    history, heading, beginning = view.summary.text.partition(TURN_CONTEXT)
    assert heading
    assert "Summary of the history." in history
    assert "Summary of the turn." in beginning


@pytest.mark.claim("S0.17", "S0.20", "S0.26", "S0.38", "S0.48")
@FOLDERS
def test_the_blocks_before_the_cut_are_summed_up_once_each(folder: str) -> None:
    splits, updates = 0, 0
    for vector in lines_of(folder, "kdcube"):
        compaction, name = compaction_of(vector), vector["vector"]
        cut, summary = compaction.cut, compaction.summary
        if cut is None or summary is None:
            continue
        asked = {request.part: request for request in compaction.asked}
        told = [item.position for request in compaction.asked for item in request.items]
        gone = [i for i in window_of(vector).open_to_cut if i.position < cut.first_kept]
        assert told == [item.position for item in gone], name
        meta, prefix = summary["meta"], asked.get(Part.TURN)
        assert meta["covered_turn_ids"] == kdcube.turns(gone), name
        if cut.turn_start is not None:
            assert prefix is not None, name
            assert prefix.items[0].position == cut.turn_start, name
            assert meta["split_turn_id"] == summary["turn_id"], name
            splits += 1
        else:
            assert prefix is None, name
            assert "split_turn_id" not in meta, name
        standing = window_of(vector).summary
        if standing is not None and Part.HISTORY in asked:
            assert asked[Part.HISTORY].previous == standing.text.strip(), name
            updates += 1
    assert splits
    assert updates


@pytest.mark.claim("S0.26", "S0.27", "S0.44")
def test_a_second_summary_is_written_from_the_first_and_takes_its_place(
    session: StoredSession,
) -> None:
    writer = ByForm()
    loop = over(session).loop(policy=POLICY, limit=LIMIT, summarisers=[writer])
    first = loop.prepare()
    session.append(Block.assistant("done"))
    turns(session, 30)

    second = loop.prepare()

    assert first.boundary is not None
    assert second.boundary is not None
    assert first.summary is not None
    assert second.summary is not None
    assert second.boundary.previous == first.boundary.originator_version
    assert second.boundary.first_kept > first.boundary.first_kept
    assert second.summary.covers & first.summary.covers == first.summary.covers
    # The first is where it was: an earlier coordinate shows it.
    assert session.view(at=first.coordinate.position).summary == first.summary


# What fails


@pytest.mark.claim("S0.50")
@pytest.mark.parametrize("fails", list(Part))
def test_where_the_original_had_no_summary_the_view_stays(
    session: StoredSession, fails: Part
) -> None:
    before = in_the_middle_of_a_turn(session).view()
    loop = session.loop(
        policy=SHIPPED,
        limit=int(before.tokens / 0.95),
        settings={"keep_recent_turns": 0},
        summarisers=[ByForm(fails=frozenset({fails}))],
    )

    view = loop.prepare()

    assert view.boundary is None
    assert view.entries == before.entries


@pytest.mark.claim("S0.50")
def test_by_default_a_failed_summariser_costs_quality_and_no_compaction(
    session: StoredSession,
) -> None:
    """The ruling: the document says nothing of failure, and no view may stay over its limit."""
    loop = over(session).loop(
        policy=POLICY, limit=LIMIT, summarisers=[ByForm(fails=frozenset(Part))]
    )

    view = loop.prepare()

    assert view.summary is not None
    assert view.summary.summariser == "extractive"


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


@pytest.mark.claim("S0.28", "S0.29", "S0.30", "S0.31")
def test_the_dialect_sorts_artifacts_by_who_saw_them_and_by_tool(session: StoredSession) -> None:
    entries = with_tools(session).view().entries
    items = [
        Item(position=e.position, block=e.block, turn=e.turn, tokens=e.tokens, call=e.call)
        for e in entries
    ]

    digest = kdcube.digest(items)

    paths = {name: [one["artifact_path"] for one in digest[name]] for name in list(digest)[:5]}
    plan = ARTIFACT["artifact_path"]
    assert paths == {
        "artifacts": [plan, "fi:p", "fi:e"],
        "streamed_artifacts": [plan, "fi:p"],
        "written_files": [plan],
        "patched_files": ["fi:p"],
        "exec_outputs": ["fi:e"],
    }
    assert [one["query"] for one in digest["memory_read"]] == ["plans"]


@pytest.mark.claim("S0.30")
def test_of_one_reading_of_a_memory_twenty_turns_and_paths_are_told() -> None:
    hits = [{"turn_id": f"t{n}", "snippets": [{"path": f"p{n}"}]} for n in range(30)]
    call = ToolCall(tool_call_id="c", name="react.memory_read", arguments={"query": "q"})
    result = ToolResult(tool_call_id="c", content=json.dumps({"hits": hits}))
    digest = kdcube.digest([item(call, 1), item(result, 2)])

    (read,) = digest["memory_read"]
    assert read["hits_count"] == 30
    assert (len(read["turn_ids"]), len(read["paths"])) == (20, 20)


@pytest.mark.claim("S0.31", "S0.45")
@FOLDERS
def test_hidden_blocks_of_the_originals_histories_surface_in_the_digest(folder: str) -> None:
    found = 0
    for vector in lines_of(folder, "kdcube"):
        compaction = compaction_of(vector)
        if compaction.summary is None or compaction.cut is None:
            continue
        blocks = vector["input"][compaction.cut.begins - 1 : compaction.cut.first_kept - 1]
        texts = [b["meta"].get("replacement_text", "") for b in blocks if b["hidden"]]
        told = compaction.summary["meta"]["compaction_digest"]["hidden_blocks"]
        assert [one["replacement_text"] for one in told] == texts, vector["vector"]
        found += len(told)
    assert found or folder == "committed", "of the sample, no compaction takes hidden blocks out"


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
    assert moments.index(Moment.PRE_COMPACT) < moments.index(Moment.SUMMARISING)
    assert moments.index(Moment.SUMMARISED) < moments.index(Moment.RECORDED)
    first = heard[moments.index(Moment.PRE_COMPACT)]
    last = heard[moments.index(Moment.RECORDED)]
    assert view.boundary is not None
    assert first.before is not None
    assert last.before == first.before
    assert last.after is not None
    gone = [e for e in before.entries if e.position not in view.boundary.kept]
    assert first.compacted_blocks == len(gone)
    assert first.before.summaries == 0
    assert kdcube.stats(
        first.before.tokens, last.after.tokens, last.compacted_blocks or 0, last.after.summaries
    ) == {
        "tokens_before": view.boundary.pre_tokens,
        "tokens_after": view.boundary.post_tokens,
        "compacted_blocks": len(gone),
        "summary_block_count": 1,
    }


@pytest.mark.claim("S0.32", "S0.33")
def test_no_hook_is_called_where_nothing_is_compacted(
    session: StoredSession, store: SessionStore
) -> None:
    turns(session, 3)
    heard = told_to(store)

    session.loop(policy=POLICY, limit=LIMIT).prepare()

    assert heard == []


# Cache points


@pytest.mark.claim("S0.40", "S0.47")
@FOLDERS
def test_two_cache_points_are_in_what_is_rendered_after_a_compaction(folder: str) -> None:
    seen = 0
    for vector in lines_of(folder, "kdcube"):
        compaction = compaction_of(vector)
        rendered = kdcube.rendered(compaction.visible)
        if compaction.summary is None or len(rendered) < 3:
            continue
        paths = [kdcube_timeline.path_of(one.block) for one in rendered]
        if len(set(filter(None, paths[-3:]))) == 0:
            assert len(cache_points(paths)) == 2, vector["vector"]
            seen += 1
        assert cache_points(paths)[-1] == len(rendered) - 1
    assert seen


@pytest.mark.claim("S0.40", "S0.47")
def test_what_a_provider_is_sent_after_a_compaction_has_two_cache_points(
    session: StoredSession,
) -> None:
    view = over(session).loop(policy=POLICY, limit=LIMIT).prepare()

    assert view.summary is not None
    messages = json.dumps(render(view, "anthropic-cached")["messages"])
    assert messages.count('"cache_control"') == 2


@pytest.mark.claim("S0.22", "S0.43")
@FOLDERS
def test_what_does_not_fire_and_is_not_forced_stays_as_it_is(folder: str) -> None:
    still = 0
    for vector in lines_of(folder, "kdcube"):
        if vector["expected"]["trigger"]:
            continue
        config = vector["config"]
        window = timeline_window(vector["input"], config, Trigger.THRESHOLD)
        assert shipped(vector).plan(window) is None, vector["vector"]
        assert not shipped(vector).fires(window), vector["vector"]
        still += 1
    assert still

"""An agent's three calls: what they compact, when they leave it, and what they say."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import pytest
from agent_talk import TOO_LONG, Scripted, full, talk
from clock import Clock

import cutbank
from cutbank import (
    AsyncAgentLoop,
    AsyncSession,
    Block,
    CompactionOptions,
    LoopOptions,
    StoredSession,
    ToolCall,
    ToolResult,
    Trigger,
)
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.runtime.sessions.session_store import SessionStore
from cutbank.domain.compaction_terms import PinRules
from cutbank.domain.errors import CompactionCancelledError, ContextOverflowError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer
from cutbank.domain.session_events import Parent, Usage
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.projections.history_view import HistoryView
from cutbank.projections.planned_compaction import PlannedCompaction

LIMIT = 8_000


def boundaries(told: list[CompactionEvent]) -> int:
    return sum(happening.moment is CompactionEventKind.ACTIVATED for happening in told)


# Before a call


def test_a_view_below_the_threshold_stays(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    talk(session, 2)

    view = session.loop(limit=LIMIT).prepare()

    assert not told
    assert view == session.view()
    assert view.boundary is None
    assert session.log.lineages == []


@pytest.mark.claim("S2.20", "S2.26", "S2.32", "S2.33", "S3.12")
def test_a_view_over_the_threshold_is_compacted_before_a_call(session: StoredSession) -> None:
    before = full(session).view()

    view = session.loop(limit=LIMIT).prepare()

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.THRESHOLD
    assert view.tokens < before.tokens
    assert view.entries[-1].text == "and now?"
    assert view == session.view()


@pytest.mark.claim("S2.27")
def test_a_request_is_compacted_once(session: StoredSession, told: list[CompactionEvent]) -> None:
    full(session)
    first = session.loop(limit=LIMIT).prepare()
    # Under a lower limit the same view is over the threshold again.
    lower = session.loop(limit=first.tokens)

    assert [lower.prepare() for _ in range(3)] == [first] * 3
    assert boundaries(told) == 1

    lower.record_call(first, usage=Usage(input=first.tokens, output=3))
    second = lower.prepare()
    assert boundaries(told) == 2
    session.append(Block.assistant("done"), Block.user("next"))
    assert session.loop(limit=second.tokens).prepare().boundary != second.boundary


def test_a_turn_may_have_one_compaction(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    full(session)
    loop = session.loop(limit=LIMIT, options=LoopOptions(once_a_turn=True))
    loop.prepare()
    for number in range(60):
        session.append(ToolCall(tool_call_id=f"c{number}", name="read", arguments={}))
        session.append(ToolResult(tool_call_id=f"c{number}", content="r" * 400))
        loop.prepare()
    assert boundaries(told) == 1

    session.append(Block.assistant("done"), Block.user("next"))
    loop.prepare()

    assert boundaries(told) == 2


@pytest.mark.claim("S3.14")
def test_sub_agents_and_loops_by_hand_compact_after_an_overflow_only(store: SessionStore) -> None:
    sub = store.session("sub", parent=Parent(namespace="default", key="main"))
    loops = (
        full(sub).loop(limit=LIMIT),
        full(store.session("by hand")).loop(limit=LIMIT, options=LoopOptions(auto=False)),
    )

    for loop in loops:
        assert loop.prepare().boundary is None
        assert loop.handle_overflow(TOO_LONG).boundary is not None


@pytest.mark.claim("S3.33")
def test_a_futile_attempt_waits_for_growth(
    session: StoredSession, told: list[CompactionEvent]
) -> None:
    session.pin(session.append(Block.user("x" * 26_000)).last)
    talk(session, 2)
    loop = session.loop(limit=LIMIT, options=LoopOptions(settings={"keep_tokens": 100}))

    views = [loop.prepare() for _ in range(5)]

    assert all(view.boundary is None for view in views)
    version = session.view().coordinate.lineage_version
    assert session.log.compactor().decisions.read_state().futile == session.position
    eager = LoopOptions(settings={"keep_tokens": 100}, regrowth=0)
    session.loop(limit=LIMIT, options=eager).prepare()
    assert session.view().coordinate.lineage_version == version + 1
    session.append(Block.user("a little more"))
    loop.prepare()
    assert session.view().coordinate.lineage_version == version + 1
    assert not told

    talk(session, 20)
    assert loop.prepare().boundary is not None
    assert session.log.compactor().decisions.read_state().futile == 0


def test_the_first_prompt_and_standing_instructions_stay_word_for_word(
    session: StoredSession,
) -> None:
    session.append(Block.user("Build the parser. Never touch migrations."))
    session.append(Block.developer("Answer in French."))
    full(session)
    forgets = Scripted(lambda _: Draft("The user has dropped the goal. Nothing is to be done."))

    view = session.loop(
        limit=LIMIT, options=LoopOptions(summarizers=[forgets], pins=PinRules())
    ).prepare()

    assert view.summary is not None
    assert "dropped the goal" in view.summary.text
    assert [entry.text for entry in view.entries[:2]] == [
        "Build the parser. Never touch migrations.",
        "Answer in French.",
    ]
    assert all(entry.is_pinned for entry in view.entries[:2])


# Cancelling


class Never:
    """A summarizer that is at it until it is cancelled."""

    name = "never"

    def __init__(self) -> None:
        self.writes, self.stopped = threading.Event(), threading.Event()

    async def summarize(self, _: Material) -> Draft:
        self.writes.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("unreachable")


def never_done(session: StoredSession) -> tuple[Never, AgentLoop]:
    never = Never()
    return never, full(session).loop(limit=LIMIT, options=LoopOptions(summarizers=[never]))


@pytest.mark.claim("S2.53")
def test_cancelling_leaves_the_view_as_it_was(session: StoredSession) -> None:
    never, loop = never_done(session)
    before = session.view()
    with ThreadPoolExecutor() as agent:
        preparing = agent.submit(loop.prepare)
        assert never.writes.wait(30)
        loop.cancel()

        with pytest.raises(CompactionCancelledError):
            preparing.result(30)

    assert never.stopped.is_set()
    after = session.view()
    assert (after.entries, after.boundary) == (before.entries, None)
    assert session.log.compactor().decisions.read_state().requested == 0
    # The next one may succeed.
    assert session.loop(limit=LIMIT).prepare().boundary is not None


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("verb", ["prepare", "compact"])
def test_cancelling_an_awaited_call_stops_its_summary(
    session: StoredSession, backend: str, verb: str
) -> None:
    never, loop = never_done(session)
    options = CompactionOptions(summarizers=[never])

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            if verb == "prepare":
                tasks.start_soon(AsyncAgentLoop(loop).prepare)
            else:
                compact = partial(AsyncSession(session).compact, limit=LIMIT, options=options)
                tasks.start_soon(compact)
            assert await anyio.to_thread.run_sync(never.writes.wait, 30)
            tasks.cancel_scope.cancel()
        assert never.stopped.is_set()

    anyio.run(run, backend=backend)

    assert session.view().boundary is None


def test_an_awaited_loop_does_what_the_other_does(session: StoredSession) -> None:
    async def run() -> HistoryView:
        loop = AsyncAgentLoop(full(session).loop(limit=LIMIT))
        view = await loop.prepare()
        await loop.record_call(view, usage=Usage(input=10, output=1), renderer="anthropic")
        return await loop.handle_overflow(TOO_LONG)

    view = asyncio.run(run())

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW


# What is told


@pytest.mark.claim("S4.17")
def test_a_hook_may_add_instructions(store: SessionStore, session: StoredSession) -> None:
    asked: list[str | None] = []

    def writes(material: Material) -> Draft:
        asked.append(material.instructions)
        return Draft("A summary of it.")

    store.listeners.append(lambda _: HookAnswer(instructions="Keep the ticket's number."))
    options = LoopOptions(summarizers=[Scripted(writes)], instructions="Be short.")

    full(session).loop(limit=LIMIT, options=options).prepare()

    assert asked == ["Be short.\nKeep the ticket's number."]


def test_a_veto_leaves_the_view(
    store: SessionStore, session: StoredSession, told: list[CompactionEvent]
) -> None:
    store.listeners.append(lambda _: HookAnswer(veto="not while the tests run"))
    loop = full(session).loop(limit=LIMIT)

    assert loop.prepare().boundary is None
    assert session.log.lineages == []
    assert told[-1].moment is CompactionEventKind.REJECTED
    assert told[-1].reason == "vetoed: not while the tests run"
    with pytest.raises(ContextOverflowError, match="not while the tests run"):
        loop.handle_overflow(TOO_LONG)


def test_a_listener_that_fails_stops_nothing(
    store: SessionStore, session: StoredSession, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(happening: CompactionEvent) -> None:
        raise ValueError("a listener's own fault")

    store.listeners.append(fails)

    view = full(session).loop(limit=LIMIT).prepare()

    assert view.boundary is not None
    assert "a listener's own fault" in caplog.text


# After a crash


def begin_and_die(session: StoredSession, **how: Any) -> int:
    """Record a request whose process does no more."""
    order = replace(session.loop(limit=LIMIT).request, **how)
    compactor = session.log.compactor()
    planned = compactor.plan(order)
    assert isinstance(planned, PlannedCompaction)
    return compactor.decisions.record_request(order, planned)


def test_a_request_whose_process_died_has_failed(database: str, clock: Clock) -> None:
    with cutbank.open(database, clock=clock) as store:
        session = store.session("s")
        talk(session, 26)
        session.append(Block.user("and now?"))
        begin_and_die(session)

    with cutbank.open(database, clock=clock) as store:
        session = store.session("s")
        loop = session.loop(limit=LIMIT)
        decisions = session.log.compactor().decisions
        assert loop.prepare().boundary is None  # whoever asked may be at it still
        assert decisions.read_state().requested

        clock.now += timedelta(seconds=loop.request.chain.max_duration_s)
        assert loop.prepare().boundary is None
        assert decisions.read_state().requested == 0

        session.append(Block.assistant("word " * 5_000))
        view = loop.prepare()
        assert view.boundary is not None
        assert view.boundary.trigger is Trigger.THRESHOLD


def test_no_agent_waits_for_what_a_dead_worker_wanted(session: StoredSession, clock: Clock) -> None:
    talk(session, 26)
    requested = begin_and_die(session, by="a worker", lease_s=60.0)
    clock.now += timedelta(hours=1)

    view = session.loop(limit=LIMIT).prepare()

    assert view.boundary is None
    assert session.log.compactor().decisions.read_state().requested == requested

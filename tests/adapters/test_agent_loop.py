"""An agent's three calls: what they compact, when they leave it, and what they say."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from clock import Clock

import cutbank
from cutbank import Block, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.agent_loop import AgentLoop, Habits
from cutbank.adapters.runtime.sessions.session_store import SessionStore
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.errors import (
    CompactionCancelledError,
    ContextOverflowError,
    NothingToCompactError,
    SummariserFailedError,
)
from cutbank.domain.hooks import Happening, Moment, Verdict
from cutbank.domain.pins import PinRules
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import ContextOverflowed, Parent, Usage
from cutbank.domain.summaries.extractive import Extractive
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import OnFailure, Plan, Window
from cutbank.projections.history_view import HistoryView
from cutbank.projections.planned_compaction import Planned

LIMIT = 8_000
TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 9100 tokens > 8000 maximum",
    },
}


class RefusedError(Exception):
    """What a provider's client raises."""


@dataclass(frozen=True)
class Scripted:
    """A summariser that answers as it is told."""

    says: Callable[[Material], Draft | Awaitable[Draft]]
    name: str = "scripted"

    def summarise(self, material: Material) -> Draft | Awaitable[Draft]:
        return self.says(material)


def talk(session: StoredSession, turns: int, *, size: int = 400) -> None:
    """Turns of a user and an agent, `size` characters each way."""
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * size))
        session.append(Block.assistant(f"answer {turn} " + "a" * size))


def full(session: StoredSession) -> StoredSession:
    """A session that is over the threshold, and whose user waits for an answer."""
    talk(session, 40)
    session.append(Block.user("and now?"))
    return session


def boundaries(session: StoredSession, told: list[Happening]) -> int:
    return sum(happening.moment is Moment.ACTIVATED for happening in told)


@pytest.fixture
def told(store: SessionStore) -> list[Happening]:
    """All that is told of compactions in the store."""
    heard: list[Happening] = []
    store.listeners.append(heard.append)
    return heard


# Before a call


def test_a_view_below_the_threshold_is_served_as_it_is(session: StoredSession) -> None:
    talk(session, 2)

    view = session.loop(limit=LIMIT).prepare()

    assert view == session.view()
    assert view.boundary is None
    assert session.lineages == []


def test_a_view_over_the_threshold_is_compacted_before_it_is_served(
    session: StoredSession,
) -> None:
    before = full(session).view()

    view = session.loop(limit=LIMIT).prepare()

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.THRESHOLD
    assert view.tokens < before.tokens
    assert view.entries[-1].text == "and now?"
    assert view == session.view()


def test_a_request_is_compacted_once_however_often_it_is_prepared(
    session: StoredSession, told: list[Happening]
) -> None:
    full(session)
    first = session.loop(limit=LIMIT).prepare()
    # Under a lower limit the same view is over the threshold again.
    lower = session.loop(limit=5_000)

    again = [lower.prepare() for _ in range(3)]

    assert boundaries(session, told) == 1
    assert all(view == first for view in again)
    session.append(Block.assistant("done"), Block.user("next"))
    assert lower.prepare().boundary != first.boundary


def test_a_recorded_call_ends_a_request(session: StoredSession, told: list[Happening]) -> None:
    full(session)
    view = session.loop(limit=LIMIT).prepare()
    lower = session.loop(limit=5_000)
    lower.record_call(view, usage=Usage(input=view.tokens, output=3))

    lower.prepare()

    assert boundaries(session, told) == 2


def test_a_turn_can_be_granted_one_compaction(
    session: StoredSession, told: list[Happening]
) -> None:
    full(session)
    loop = session.loop(limit=LIMIT, habits=Habits(once_a_turn=True))
    loop.prepare()
    for number in range(60):
        session.append(ToolCall(tool_call_id=f"c{number}", name="read", arguments={}))
        session.append(ToolResult(tool_call_id=f"c{number}", content="r" * 400))
        loop.prepare()
    assert boundaries(session, told) == 1

    session.append(Block.assistant("done"), Block.user("next"))
    loop.prepare()

    assert boundaries(session, told) == 2


def test_a_sub_agent_is_compacted_after_an_overflow_only(store: SessionStore) -> None:
    session = store.session("sub", parent=Parent(namespace="default", key="main"))
    loop = full(session).loop(limit=LIMIT)

    assert loop.prepare().boundary is None
    assert loop.overflowed(TOO_LONG).boundary is not None


def test_a_loop_that_is_not_automatic_leaves_the_view(session: StoredSession) -> None:
    loop = full(session).loop(limit=LIMIT, habits=Habits(auto=False))

    assert loop.prepare().boundary is None


def held_up(session: StoredSession) -> StoredSession:
    """A session over the threshold, of which pins hold nearly all."""
    session.pin(session.append(Block.user("x" * 26_000)).last)
    talk(session, 2)
    return session


def test_what_cannot_become_smaller_is_not_tried_at_every_call(
    session: StoredSession, told: list[Happening]
) -> None:
    loop = held_up(session).loop(limit=LIMIT, settings={"keep_tokens": 100})

    views = [loop.prepare() for _ in range(5)]

    assert all(view.boundary is None for view in views)
    version = session.view().coordinate.lineage_version
    assert session.compactor().decisions.state().futile == session.position
    session.append(Block.user("a little more"))
    loop.prepare()
    assert session.view().coordinate.lineage_version == version
    assert not told


def test_it_is_tried_again_once_the_session_has_grown(session: StoredSession) -> None:
    loop = held_up(session).loop(limit=LIMIT, settings={"keep_tokens": 100})
    loop.prepare()
    assert session.compactor().decisions.state().futile

    talk(session, 20)
    view = loop.prepare()

    assert view.boundary is not None
    assert session.compactor().decisions.state().futile == 0


def test_the_first_prompt_and_standing_instructions_stay_whatever_a_summary_says(
    session: StoredSession,
) -> None:
    session.append(Block.user("Build the parser. Never touch migrations."))
    session.append(Block.developer("Answer in French."))
    full(session)
    forgets = Scripted(lambda _: Draft("The user has dropped the goal. Nothing is to be done."))

    view = session.loop(limit=LIMIT, summarisers=[forgets], pins=PinRules()).prepare()

    assert view.summary is not None
    assert "dropped the goal" in view.summary.text
    assert [entry.text for entry in view.entries[:2]] == [
        "Build the parser. Never touch migrations.",
        "Answer in French.",
    ]
    assert all(entry.is_pinned for entry in view.entries[:2])


def test_what_is_said_while_a_summary_is_written_is_kept_and_served(
    session: StoredSession,
) -> None:
    def listens(_: Material) -> Draft:
        session.append(Block.user("wait, one more thing"))
        return Draft("A summary of it.")

    view = full(session).loop(limit=LIMIT, summarisers=[Scripted(listens)]).prepare()

    assert view.summary is not None
    assert view.summary.text == "A summary of it."
    assert view.entries[-1].text == "wait, one more thing"


# Cancelling


def test_cancelling_stops_a_summary_and_leaves_the_view_as_it_was(
    session: StoredSession,
) -> None:
    writes, stopped = threading.Event(), threading.Event()

    async def never(_: Material) -> Draft:
        writes.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError("unreachable")

    before = full(session).view()
    loop = session.loop(limit=LIMIT, summarisers=[Scripted(never)])
    caught: list[BaseException] = []

    def prepares() -> None:
        try:
            loop.prepare()
        except CompactionCancelledError as error:
            caught.append(error)

    agent = threading.Thread(target=prepares)
    agent.start()
    assert writes.wait(30)
    loop.cancel()
    agent.join(30)

    assert caught
    assert stopped.is_set()
    after = session.view()
    assert (after.entries, after.boundary) == (before.entries, None)
    assert session.compactor().decisions.state().requested == 0
    # The next one may succeed.
    assert session.loop(limit=LIMIT).prepare().boundary is not None


def test_cancelling_an_awaited_call_stops_its_summary(session: StoredSession) -> None:
    full(session)

    async def run() -> None:
        writes = asyncio.Event()
        mine = asyncio.get_running_loop()
        stopped = threading.Event()

        async def never(_: Material) -> Draft:
            mine.call_soon_threadsafe(writes.set)
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            raise AssertionError("unreachable")

        loop = session.async_loop(limit=LIMIT, summarisers=[Scripted(never)])
        preparing = asyncio.create_task(loop.prepare())
        await asyncio.wait_for(writes.wait(), 30)
        preparing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await preparing
        assert stopped.is_set()

    asyncio.run(run())

    assert session.view().boundary is None


def test_an_awaited_loop_does_what_the_other_does(session: StoredSession) -> None:
    full(session)

    async def run() -> HistoryView:
        loop = session.async_loop(limit=LIMIT)
        view = await loop.prepare()
        await loop.record_call(view, usage=Usage(input=10, output=1), renderer="anthropic")
        return await loop.overflowed(TOO_LONG)

    view = asyncio.run(run())

    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.OVERFLOW


# After a refusal


def test_an_overflow_is_compacted_and_recorded(session: StoredSession, store: SessionStore) -> None:
    talk(session, 15)
    session.append(Block.user("and now?"))
    before = session.view()
    loop = session.loop(limit=200_000, model="claude-sonnet-4-5")

    view = loop.overflowed(TOO_LONG)

    assert view.tokens < before.tokens
    assert loop.order.limit == 8_000  # as the provider says
    recorded = [
        store.events.mapper.to_domain_event(row)
        for row in store.events.recorder.select_events(session.id)
    ]
    (overflow,) = [event for event in recorded if isinstance(event, ContextOverflowed)]
    assert (overflow.model, overflow.message) == (
        "claude-sonnet-4-5",
        "prompt is too long: 9100 tokens > 8000 maximum",
    )


def test_a_second_overflow_of_one_request_is_a_typed_error(
    session: StoredSession, told: list[Happening]
) -> None:
    loop = full(session).loop(limit=LIMIT)
    loop.overflowed(TOO_LONG)

    with pytest.raises(ContextOverflowError) as caught:
        # Another process goes on after a restart: it is the same request.
        session.loop(limit=LIMIT).overflowed(TOO_LONG)

    error = caught.value
    assert boundaries(session, told) == 1
    assert (error.tokens, error.limit) == (9_100, 8_000)
    assert error.hints
    assert error.largest
    assert f"#{error.largest[0]} " in str(error)
    assert "\n" not in str(error)


def test_after_an_answer_an_overflow_is_compacted_again(
    session: StoredSession, told: list[Happening]
) -> None:
    loop = full(session).loop(limit=LIMIT)
    loop.overflowed(TOO_LONG)
    talk(session, 20)

    loop.overflowed(TOO_LONG)

    assert boundaries(session, told) == 2


def test_a_view_that_cannot_be_made_smaller_names_what_holds_it_up(
    session: StoredSession,
) -> None:
    huge = session.append(Block.user("x" * 50_000)).last
    session.pin(huge)
    loop = session.loop(limit=LIMIT)

    with pytest.raises(ContextOverflowError, match="largest blocks are #") as caught:
        loop.overflowed(TOO_LONG)

    assert caught.value.largest == (huge,)
    assert isinstance(caught.value.__cause__, NothingToCompactError)


def test_an_error_about_something_else_is_raised_again(
    session: StoredSession, told: list[Happening]
) -> None:
    error = RefusedError("rate limit exceeded: too many tokens per minute")
    loop = full(session).loop(limit=LIMIT)

    with pytest.raises(RefusedError) as caught:
        loop.overflowed(error)

    assert caught.value is error
    assert not told
    assert session.view().boundary is None


# Where no summary can be had


@dataclass(frozen=True)
class Unforgiving(ReserveHeadroom):
    """Leaves the view as it is, rather than to go without a summary."""

    name: ClassVar[str] = "unforgiving"

    def plan(self, window: Window) -> Plan | None:
        plan = super().plan(window)
        return plan and replace(plan, on_failure=OnFailure.UNCHANGED)


def failing(session: StoredSession) -> AgentLoop:
    def fails(material: Material) -> Draft:
        raise SummariserFailedError("no such model")

    return full(session).loop(limit=LIMIT, policy=Unforgiving(), summarisers=[Scripted(fails)])


def test_a_policy_may_leave_the_view_where_no_summary_can_be_had(
    session: StoredSession, told: list[Happening]
) -> None:
    before = full(session).view()

    view = failing(session).prepare()

    assert view.boundary is None
    assert view.entries[: len(before.entries)] == before.entries
    assert told[-1].moment is Moment.FAILED
    assert told[-1].reason == "scripted: no such model"


def test_after_an_overflow_it_is_an_error_that_says_who_failed(session: StoredSession) -> None:
    with pytest.raises(ContextOverflowError, match="scripted: no such model"):
        failing(session).overflowed(TOO_LONG)

    assert session.view().boundary is None


# What is told


def test_every_moment_is_told_in_order_with_sizes(
    session: StoredSession, told: list[Happening]
) -> None:
    before = full(session).view()

    view = session.loop(limit=LIMIT).prepare()
    session.revert()

    assert [happening.moment for happening in told] == [
        Moment.PRE_COMPACT,
        Moment.REQUESTED,
        Moment.SUMMARISING,
        Moment.SUMMARISED,
        Moment.RECORDED,
        Moment.ACTIVATED,
        Moment.SESSION_START,
        Moment.REVERTED,
    ]
    first, done = told[0], told[5]
    assert first.before is not None
    assert (first.before.tokens, first.before.blocks) == (before.tokens, len(before.entries))
    assert first.after is None
    assert done.after is not None
    assert done.after.blocks == len(view.entries)
    assert done.after.tokens == view.tokens
    assert told[6].source == "compact"


def test_a_hook_may_add_instructions(store: SessionStore, session: StoredSession) -> None:
    asked: list[str | None] = []

    def writes(material: Material) -> Draft:
        asked.append(material.instructions)
        return Draft("A summary of it.")

    def wishes(happening: Happening) -> Verdict | None:
        if happening.moment is Moment.PRE_COMPACT:
            return Verdict(instructions="Keep the ticket's number.")
        return None

    store.listeners.append(wishes)
    loop = full(session).loop(limit=LIMIT, summarisers=[Scripted(writes)], instructions="Be short.")

    loop.prepare()

    assert asked == ["Be short.\nKeep the ticket's number."]


def test_a_veto_leaves_the_view(
    store: SessionStore, session: StoredSession, told: list[Happening]
) -> None:
    store.listeners.append(lambda _: Verdict(veto="not while the tests run"))
    loop = full(session).loop(limit=LIMIT)

    assert loop.prepare().boundary is None
    assert session.lineages == []
    assert told[-1].moment is Moment.REJECTED
    assert told[-1].reason == "vetoed: not while the tests run"
    with pytest.raises(ContextOverflowError, match="not while the tests run"):
        loop.overflowed(TOO_LONG)


def test_a_listener_that_fails_stops_nothing(
    store: SessionStore, session: StoredSession, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(happening: Happening) -> None:
        raise ValueError("a listener's own fault")

    store.listeners.append(fails)

    view = full(session).loop(limit=LIMIT).prepare()

    assert view.boundary is not None
    assert "a listener's own fault" in caplog.text


# After a crash


def test_a_request_whose_process_died_is_picked_up(
    database: str, clock: Clock, tmp_path: Path
) -> None:
    with cutbank.open(database, clock=clock) as store:
        session = store.session("s")
        talk(session, 26)
        session.append(Block.user("and now?"))
        order = session.loop(limit=LIMIT).order
        planned = session.compactor().planner.planned(order)
        assert isinstance(planned, Planned)
        session.compactor().decisions.request(order, planned)  # and here its process died

    with cutbank.open(database, clock=clock) as store:
        session = store.session("s")
        loop: AgentLoop = session.loop(limit=LIMIT)
        assert loop.prepare().boundary is None  # whoever asked may be at it still
        assert session.compactor().decisions.state().requested

        clock.now += timedelta(seconds=loop.order.chain.longest_s)
        view = loop.prepare()

        assert view.boundary is not None
        assert view.boundary.trigger is Trigger.MANUAL
        assert session.compactor().decisions.state().requested == 0


def test_no_agent_waits_for_what_a_dead_worker_wanted(session: StoredSession, clock: Clock) -> None:
    talk(session, 26)
    order = replace(session.loop(limit=LIMIT).order, by="a worker", lease_s=60.0)
    planned = session.compactor().planner.planned(order)
    assert isinstance(planned, Planned)
    requested = session.compactor().decisions.request(order, planned)  # and here its process died
    clock.now += timedelta(hours=1)

    view = session.loop(limit=LIMIT).prepare()

    assert view.boundary is None
    assert session.compactor().decisions.state().requested == requested


def test_the_default_writer_needs_nothing(session: StoredSession) -> None:
    view = full(session).loop(limit=LIMIT).prepare()

    assert view.summary is not None
    assert view.summary.summariser == Extractive().name

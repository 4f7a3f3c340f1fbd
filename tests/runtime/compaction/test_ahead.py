"""A summary is written while the agent works, in a thread that nobody waits for too early."""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from agent_talk import talk
from clock import Clock

import cutbank
from cutbank import Block, LoopOptions, SessionStore, StoredSession
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.runtime.compaction.cancellation import Cancellation
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction import derive_lineage_id
from cutbank.domain.compaction_events import CompactionRequested, Trigger
from cutbank.domain.errors import CompactionCancelledError, InvalidSettingError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, Veto
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Parent
from cutbank.domain.summaries.summarizer import Draft, Material

LIMIT = 8_000
POLICY = ReserveHeadroom(keep_tokens=500)
PATIENCE = 60
EARLY = LoopOptions(prepare_at=0.5)


@dataclass
class Slow:
    """A summariser that is at it until it is told to end."""

    begun: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    asked: list[Material] = field(default_factory=list)
    name: str = "slow"

    def summarize(self, material: Material) -> Draft:
        self.asked.append(material)
        self.begun.set()
        assert self.done.wait(PATIENCE), "nobody has told the summariser to end"
        return Draft(f"Summary number {len(self.asked)}.")


@pytest.fixture
def slow() -> Iterator[Slow]:
    summariser = Slow()
    yield summariser
    summariser.done.set()


@pytest.fixture
def told(store: SessionStore) -> list[CompactionEvent]:
    heard: list[CompactionEvent] = []
    store.listeners.append(heard.append)
    return heard


def near(session: StoredSession) -> StoredSession:
    """A session above half of the threshold, and below it."""
    talk(session, 18)
    return session


def loop_of(session: StoredSession, *summarisers: Slow, habits: LoopOptions = EARLY) -> AgentLoop:
    return session.loop(
        policy=POLICY, limit=LIMIT, options=replace(habits, summarizers=summarisers)
    )


def finished(session: StoredSession) -> None:
    """Wait for the thread that prepares."""
    preparations = session.log.context.preparations
    with preparations._changing:
        running = [thread for thread, _ in preparations._running.values()]
    for thread in running:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_boundary_is_prepared_while_the_agent_goes_on(
    session: StoredSession, slow: Slow, told: list[CompactionEvent]
) -> None:
    loop = loop_of(near(session), slow)
    before = session.view()

    assert loop.prepare().entries == before.entries  # while the summary is not written
    assert slow.begun.wait(PATIENCE)
    session.append(Block.user("go on"))
    assert loop.prepare().entries[-1].text == "go on"
    assert loop.prepare().boundary is None
    slow.done.set()
    finished(session)

    assert len(slow.asked) == 1
    request = session.log.compactor().reader.read_decision(2)
    assert isinstance(request, CompactionRequested)
    assert not request.activate
    assert str(os.getpid()) in (request.by or "")
    assert session.log.find_prepared() is not None
    assert session.view().boundary is None
    assert session.view().entries[-1].text == "go on"
    assert [happening.moment for happening in told] == [
        CompactionEventKind.PRE_COMPACT,
        CompactionEventKind.REQUESTED,
        CompactionEventKind.SUMMARIZING,
        CompactionEventKind.SUMMARIZED,
        CompactionEventKind.RECORDED,
    ]
    assert {happening.trigger for happening in told} == {Trigger.IDLE}
    talk(session, 13)
    session.append(Block.user("and now?"))
    view = loop.prepare()
    assert len(slow.asked) == 1
    assert view.summary is not None
    assert view.summary.text == "Summary number 1."
    assert "go on" in {entry.text for entry in view.entries}


@pytest.mark.claim("S2.51")
def test_nothing_is_prepared_unasked_too_early_or_of_a_sub_agents_session(
    store: SessionStore,
) -> None:
    sub = store.session("sub", parent=Parent(namespace="default", key="main"))
    unasked, early = store.session("unasked"), store.session("early")

    for session, habits in (
        (unasked, LoopOptions()),
        (early, LoopOptions(prepare_at=0.9)),
        (sub, EARLY),
    ):
        loop_of(near(session), habits=habits).prepare()
        finished(session)
        assert session.log.lineages == [], session


def test_a_session_has_one_preparation_however_many_loops_it_has(
    session: StoredSession, slow: Slow
) -> None:
    near(session)
    loops = [loop_of(session, slow) for _ in range(3)]

    for loop in loops:
        loop.prepare()
        loop.prepare()
    slow.done.set()
    finished(session)

    assert len(slow.asked) == 1


def test_where_others_are_at_it_nothing_is_prepared(
    session: StoredSession, slow: Slow, database: str, clock: Clock
) -> None:
    near(session)
    with cutbank.open(database, clock=clock) as other:
        loop_of(other.session(session.key), slow).prepare()
        assert slow.begun.wait(PATIENCE)

        mine = Slow()
        loop_of(session, mine).prepare()
        finished(session)
        assert not mine.asked
        slow.done.set()
        finished(other.session(session.key))

    assert session.log.find_prepared() is not None


def test_at_the_threshold_the_summary_that_is_being_written_is_waited_for(
    session: StoredSession, slow: Slow
) -> None:
    loop = loop_of(near(session), slow)
    loop.prepare()
    assert slow.begun.wait(PATIENCE)
    talk(session, 13)
    session.append(Block.user("and now?"))
    views = []

    agent = threading.Thread(target=lambda: views.append(loop.prepare()))
    agent.start()
    slow.done.set()
    agent.join(PATIENCE)

    (view,) = views
    assert len(slow.asked) == 1
    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.IDLE
    assert view.entries[-1].text == "and now?"


def test_what_is_finished_before_it_can_be_waited_for_is_not_written_twice(
    session: StoredSession, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = loop_of(near(session), slow)
    loop.prepare()
    assert slow.begun.wait(PATIENCE)
    talk(session, 13)
    preparations = session.log.context.preparations
    join = preparations.join

    def finishes_first(lineage: UUID, running: Cancellation) -> bool:
        slow.done.set()
        finished(session)
        return join(lineage, running)

    monkeypatch.setattr(preparations, "join", finishes_first)
    view = loop.prepare()

    assert len(slow.asked) == 1
    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.IDLE


def test_who_waits_for_it_may_cancel_it(session: StoredSession, slow: Slow) -> None:
    loop = loop_of(near(session), slow)
    loop.prepare()
    assert slow.begun.wait(PATIENCE)
    talk(session, 13)
    caught: list[BaseException] = []

    def prepares() -> None:
        try:
            loop.prepare()
        except CompactionCancelledError as error:
            caught.append(error)

    agent = threading.Thread(target=prepares)
    agent.start()
    while agent.is_alive() and not caught:
        loop.cancel()
        agent.join(0.01)

    assert caught
    assert session.view().boundary is None
    assert session.log.compactor().decisions.read_state().requested == 0


def test_closing_the_store_cancels_it_and_waits(database: str, clock: Clock, slow: Slow) -> None:
    with cutbank.open(database, clock=clock) as store:
        session = near(store.session("a session"))
        loop_of(session, slow).prepare()
        assert slow.begun.wait(PATIENCE)
        preparations = store.context.preparations
        (thread, _) = preparations._running[derive_lineage_id("default", session.key, "main")]

    assert not thread.is_alive()
    with cutbank.open(database, clock=clock) as store:
        session = store.session("a session")
        state = session.log.compactor().decisions.read_state()
        assert (state.requested, state.prepared) == (0, 0)
        assert loop_of(session).prepare().boundary is None


# What fails


def test_what_a_hook_forbids_is_not_tried_at_every_call(
    session: StoredSession, store: SessionStore
) -> None:
    asked: list[CompactionEventKind] = []

    def forbids(happening: CompactionEvent) -> Veto:
        asked.append(happening.moment)
        return Veto(veto="not while the tests run")

    store.listeners.append(forbids)
    loop = loop_of(near(session))
    for _ in range(4):
        loop.prepare()
        finished(session)
    assert asked.count(CompactionEventKind.PRE_COMPACT) == 1

    talk(session, 3)  # a twentieth of the limit, and more
    loop.prepare()
    finished(session)

    assert asked.count(CompactionEventKind.PRE_COMPACT) == 2
    assert session.log.find_prepared() is None


def test_what_gains_nothing_is_noted_and_not_tried_at_every_call(session: StoredSession) -> None:
    session.pin(session.append(Block.user("x" * 16_000)).last)
    talk(session, 3)
    loop = loop_of(session)

    loop.prepare()
    finished(session)
    version = session.view().coordinate.lineage_version
    assert session.log.compactor().decisions.read_state().futile
    # Neither by this process nor by another one.
    session.log.context._preparations = None
    loop.prepare()
    finished(session)

    assert session.view().coordinate.lineage_version == version


def test_what_fails_is_logged_and_the_agent_goes_on(
    session: StoredSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("out of everything")

    loop = loop_of(near(session))
    monkeypatch.setattr(
        "cutbank.adapters.runtime.compaction.compactor.Compactor._write_summary", fails
    )
    with caplog.at_level(logging.INFO, "cutbank.compaction"):
        for _ in range(3):
            assert loop.prepare().boundary is None
            finished(session)

    assert caplog.text.count("a boundary could not be prepared") == 1
    assert session.log.compactor().decisions.read_state().requested == 0


def test_a_preparation_whose_process_has_died_is_given_up_and_nobody_waits(
    session: StoredSession, store: SessionStore, clock: Clock
) -> None:
    near(session)
    events = store.events
    lineage = events.open_compaction("default", session.key, "main")
    dead = lineage.request(
        trigger=Trigger.IDLE,
        policy=POLICY.name,
        settings={"keep_tokens": 500},
        after=session.position,
        by="the dead",
        lease_s=5.0,
        activate=False,
    )
    events.save(lineage)
    clock.now = clock().replace(year=2027)

    view = loop_of(session).prepare()

    assert view.boundary is None
    assert session.log.compactor().decisions.read_state().requested != dead
    finished(session)
    assert session.log.find_prepared() is not None
    assert session.view().boundary is None


# Settings


def test_the_settings_may_ask_for_it(database: str, clock: Clock) -> None:
    settings = Settings(
        compaction=CompactionSettings(limit=LIMIT, settings={"keep_tokens": 500}, prepare_at=0.5)
    )
    with cutbank.open(database, clock=clock, settings=settings) as store:
        session = near(store.session("a session"))

        session.loop().prepare()
        finished(session)

        assert session.log.find_prepared() is not None


def test_a_loop_may_decline_what_the_settings_ask_for(database: str, clock: Clock) -> None:
    settings = Settings(
        compaction=CompactionSettings(limit=LIMIT, settings={"keep_tokens": 500}, prepare_at=0.5)
    )
    with cutbank.open(database, clock=clock, settings=settings) as store:
        session = near(store.session("a session"))

        session.loop(options=LoopOptions(prepare_at=0)).prepare()
        finished(session)

        assert session.log.find_prepared() is None


def test_a_part_that_is_none_is_refused(subtests: pytest.Subtests) -> None:
    for part in [-0.01, -0.5, 1.2]:
        with (
            subtests.test(str(part)),
            pytest.raises(InvalidSettingError, match="prepare_at cannot be"),
        ):
            LoopOptions(prepare_at=part)

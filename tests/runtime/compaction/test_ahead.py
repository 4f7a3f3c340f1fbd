"""A summary is written while the agent works, in a thread that nobody waits for too early."""

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from agent_talk import Scripted, talk
from clock import Clock

import cutbank
from cutbank import AgentLoop, Block, LoopOptions, Parent, SessionStore, Settings, StoredSession
from cutbank.adapters.runtime.compaction.background import Cancellation
from cutbank.adapters.settings.compaction_settings import CompactionSettings
from cutbank.domain.compaction import derive_lineage_id
from cutbank.domain.compaction_events import CompactionRequested, Trigger
from cutbank.domain.errors import CompactionCancelledError, InvalidSettingError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind, HookAnswer
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.summaries.summarizer import Draft, Material

LIMIT = 8_000
POLICY = ReserveHeadroom(keep_tokens=500)
PATIENCE = 60
EARLY = LoopOptions(prepare_at=0.5)


@dataclass
class Slow:
    """A summarizer that works until the test ends it."""

    begun: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    asked: list[Material] = field(default_factory=list)
    name: str = "slow"

    def summarize(self, material: Material) -> Draft:
        self.asked.append(material)
        self.begun.set()
        assert self.done.wait(PATIENCE), "the summarizer was never ended"
        return Draft(f"Summary number {len(self.asked)}.")


@pytest.fixture
def slow() -> Iterator[Slow]:
    summarizer = Slow()
    yield summarizer
    summarizer.done.set()


def near(session: StoredSession) -> StoredSession:
    """A session above half of the threshold, and below it."""
    talk(session, 18)
    return session


def loop_of(
    session: StoredSession, *summarizers: Slow | Scripted, habits: LoopOptions = EARLY
) -> AgentLoop:
    options = replace(habits, summarizers=summarizers)
    return session.loop(policy=POLICY, limit=LIMIT, options=options)


def begun(session: StoredSession, slow: Slow) -> AgentLoop:
    """A loop whose summary is being written."""
    loop = loop_of(near(session), slow)
    loop.prepare()
    assert slow.begun.wait(PATIENCE)
    return loop


def cross_the_threshold(session: StoredSession) -> None:
    talk(session, 13)
    session.append(Block.user("and now?"))


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
    before = near(session).view()
    loops = [loop_of(session, slow) for _ in range(3)]

    for loop in loops:
        assert loop.prepare().entries == before.entries
    assert slow.begun.wait(PATIENCE)
    session.append(Block.user("go on"))
    for loop in loops:
        view = loop.prepare()
        assert (view.entries[-1].text, view.boundary) == ("go on", None)
    slow.done.set()
    finished(session)

    assert len(slow.asked) == 1
    request = session.log.compactor().reader.read_decision(2)
    assert isinstance(request, CompactionRequested)
    assert not request.activate
    assert str(os.getpid()) in (request.by or "")
    assert session.log.find_prepared() is not None
    assert session.view().boundary is None
    assert [happening.moment for happening in told] == [
        CompactionEventKind.PRE_COMPACT,
        CompactionEventKind.REQUESTED,
        CompactionEventKind.SUMMARIZING,
        CompactionEventKind.SUMMARIZED,
        CompactionEventKind.RECORDED,
    ]
    assert {happening.trigger for happening in told} == {Trigger.IDLE}
    cross_the_threshold(session)
    view = loops[0].prepare()
    assert len(slow.asked) == 1
    assert view.summary is not None
    assert view.summary.text == "Summary number 1."
    assert "go on" in {entry.text for entry in view.entries}


@pytest.mark.claim("S2.51")
def test_nothing_is_prepared_unasked_too_early_or_for_a_sub_agent(store: SessionStore) -> None:
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


def test_where_others_are_at_it_nothing_is_prepared(
    session: StoredSession, slow: Slow, database: str, clock: Clock
) -> None:
    with cutbank.open(database, clock=clock) as other:
        begun(other.session(session.key), slow)

        mine = Slow()
        loop_of(session, mine).prepare()
        finished(session)
        assert not mine.asked
        slow.done.set()
        finished(other.session(session.key))

    assert session.log.find_prepared() is not None


@pytest.mark.parametrize("is_finished_first", [False, True])
def test_at_the_threshold_the_summary_that_is_being_written_is_waited_for(
    session: StoredSession, slow: Slow, monkeypatch: pytest.MonkeyPatch, is_finished_first: bool
) -> None:
    loop = begun(session, slow)
    cross_the_threshold(session)
    preparations = session.log.context.preparations
    join = preparations.join

    def ends(lineage: UUID, running: Cancellation) -> bool:
        if is_finished_first:
            slow.done.set()
            finished(session)
        else:
            threading.Timer(0.0, slow.done.set).start()
        return join(lineage, running)

    monkeypatch.setattr(preparations, "join", ends)
    view = loop.prepare()

    assert len(slow.asked) == 1
    assert view.boundary is not None
    assert view.boundary.trigger is Trigger.IDLE
    assert view.entries[-1].text == "and now?"


def test_who_waits_for_it_may_cancel_it(session: StoredSession, slow: Slow) -> None:
    loop = begun(session, slow)
    cross_the_threshold(session)
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
        session = store.session("a session")
        begun(session, slow)
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
    session: StoredSession, store: SessionStore, told: list[CompactionEvent]
) -> None:
    store.listeners.append(lambda _: HookAnswer(veto="not while the tests run"))
    loop = loop_of(near(session))

    def attempts() -> int:
        loop.prepare()
        finished(session)
        return sum(one.moment is CompactionEventKind.PRE_COMPACT for one in told)

    assert [attempts() for _ in range(4)] == [1, 1, 1, 1]
    talk(session, 3)  # a twentieth of the limit, and more
    assert attempts() == 2
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
    lineage = store.events.open_compaction("default", session.key, "main")
    dead = lineage.request(
        trigger=Trigger.IDLE,
        policy=POLICY.name,
        settings={"keep_tokens": 500},
        after=session.position,
        by="the dead",
        lease_s=5.0,
        activate=False,
    )
    store.events.save(lineage)
    clock.now = clock().replace(year=2027)

    view = loop_of(session).prepare()

    assert view.boundary is None
    assert session.log.compactor().decisions.read_state().requested != dead
    finished(session)
    assert session.log.find_prepared() is not None
    assert session.view().boundary is None


# Settings


@pytest.mark.parametrize(("prepare_at", "is_prepared"), [(None, True), (0, False)])
def test_the_settings_may_ask_for_it_and_a_loop_decline_it(
    database: str, clock: Clock, prepare_at: float | None, is_prepared: bool
) -> None:
    compaction = CompactionSettings(limit=LIMIT, settings={"keep_tokens": 500}, prepare_at=0.5)
    with cutbank.open(database, clock=clock, settings=Settings(compaction=compaction)) as store:
        session = near(store.session("a session"))

        session.loop(options=LoopOptions(prepare_at=prepare_at)).prepare()
        finished(session)

        assert (session.log.find_prepared() is not None) is is_prepared


def test_a_part_that_is_none_is_refused() -> None:
    for part in [-0.01, 1.2]:
        with pytest.raises(InvalidSettingError, match="prepare_at cannot be"):
            LoopOptions(prepare_at=part)

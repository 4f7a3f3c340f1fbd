"""Policies that decide beside a live session: never served, never waited for, never in the way."""

import logging
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, ClassVar

import pytest
from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, at_work, essence, live_blocks

import cutbank
from cutbank import Block, LoopOptions, Plan, SessionStore, Settings, StoredSession, Window
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.analysis.replaying.shadows import find_worker
from cutbank.adapters.interfaces.command_line.sessions import list_all
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.replay import replay_recording

LIMIT = 1_000
PATIENCE_S = 60


@dataclass(frozen=True)
class Raises:
    """A policy with a mistake."""

    name: ClassVar[str] = "raises"

    def plan(self, _: Window) -> Plan | None:
        raise ZeroDivisionError("of its own making")


@dataclass(frozen=True)
class Waits:
    """A policy that does not answer until the test lets it."""

    name: ClassVar[str] = "waits"
    asked: ClassVar[Event] = Event()
    answers: ClassVar[Event] = Event()

    def plan(self, _: Window) -> Plan | None:
        self.asked.set()
        self.answers.wait(PATIENCE_S)
        return None


def talk(session: StoredSession, turns: int, **how: Any) -> None:
    loop = session.loop(limit=LIMIT, options=LoopOptions(**how))
    for turn in range(turns):
        session.append(Block.user(f"question {turn} " + "q" * 300))
        loop.record_call(loop.prepare())
        session.append(Block.assistant(f"answer {turn} " + "a" * 300))


def wait(session: StoredSession, timeout_s: float = PATIENCE_S) -> bool:
    return find_worker(session.log.context).wait(timeout_s)


# What is served


@settings(max_examples=4)
@given(steps=STEPS, beside=st.lists(st.sampled_from(every_name()), max_size=3, unique=True))
def test_what_is_served_is_what_would_be_served_without_shadows(
    steps: list[tuple[Any, ...]], beside: list[str]
) -> None:
    sent = []
    for shadows in ((), beside):
        with at_work("pi", LIMIT, shadows=shadows) as agent:
            agent.do(steps)
            assert wait(agent.session)
            blocks = live_blocks(agent.session)
            sent.append([essence(view, blocks) for view in agent.sent])

    assert sent[0] == sent[1]


@settings(max_examples=4)
@given(
    steps=st.lists(STEPS.map(lambda steps: [s for s in steps if s[0] != "fork"]), max_size=2),
    name=st.sampled_from(every_name()),
    usage=st.sampled_from((None, 0.5, 3.0)),
    restarts=st.booleans(),
)
def test_a_shadow_decides_as_a_replay_does(
    steps: list[list[tuple[Any, ...]]], name: str, usage: float | None, *, restarts: bool
) -> None:
    policy = fitted(name, LIMIT)
    with at_work("pi", 400, usage=usage, shadows=[policy]) as agent:
        for part in (*steps, [("work", [], True)]):
            agent.do(part)
            assert wait(agent.session)
            if restarts:
                agent.session = StoredSession(agent.session.log)
                agent.loop = agent.session.loop(**agent.how)
        recording = read_recording(agent.session)
        terms = replace(agent.loop.request, policy=policy)
        blocks = live_blocks(agent.session)

        for served, fold in replay_recording(recording, PolicyDecider(terms, recording), limit=400):
            shown = agent.session.view(
                lineage=f"shadow:{policy.name}", at=served.call.last_seen_position
            )
            assert essence(shown, blocks) == essence(fold.make_view(), blocks)


# What an agent notices


def test_an_agent_does_not_wait_for_a_shadow(session: StoredSession) -> None:
    talk(session, 3, shadows=[Waits()])

    assert Waits.asked.wait(PATIENCE_S)
    assert not wait(session, 0)
    assert len(session.view().entries) == 5
    Waits.answers.set()
    assert wait(session)


def test_a_shadow_that_raises_is_told_once_and_dropped_whatever_listeners_do(
    store: SessionStore, session: StoredSession, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[CompactionEvent] = []

    def complain(_: CompactionEvent) -> None:
        raise ValueError("I do not want to know")

    store.listeners += [complain, told.append]

    with caplog.at_level(logging.ERROR, "cutbank.compaction"):
        talk(session, 5, shadows=[Raises(), "pi"])
        assert wait(session)

    failures = [one for one in caplog.messages if "shadow:raises" in one]
    assert failures == ["shadow:raises of session 'a session' failed, and decides no more"]
    (failed,) = [one for one in told if one.lineage == "shadow:raises"]
    assert (failed.moment, failed.session) == (CompactionEventKind.FAILED, "a session")
    assert "of its own making" in (failed.reason or "")
    assert session.log.lineages == ["main", "shadow:pi"]


def test_a_store_is_closed_though_a_shadow_comes_to_no_end(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    Waits.asked.clear()
    Waits.answers.clear()
    try:
        with cutbank.open(database, settings=Settings()) as store:
            find_worker(store.context).patience_s = 0.01
            talk(store.session("s"), 1, shadows=[Waits()])
            assert Waits.asked.wait(PATIENCE_S)

        assert "is still deciding" in caplog.text
    finally:
        Waits.answers.set()


def test_lists_of_sessions_say_nothing_of_shadows(
    store: SessionStore, session: StoredSession
) -> None:
    talk(store.session("another"), 20)
    talk(session, 20, shadows=["retention-window", "pi"])
    assert wait(session)

    one, two = list_all(store, None)
    own = {"session": "", "lineages": [], "said_at": ""}
    assert {**one, **own} == {**two, **own}


# Which there are


def test_the_settings_name_shadows(database: str) -> None:
    given_settings = Settings.model_validate({"shadow": {"policies": ["pi@as_shipped"]}})
    with cutbank.open(database, settings=given_settings) as store:
        session = store.session("s")
        talk(session, 20)
        assert wait(session)

        assert session.log.lineages == ["main", "shadow:pi@as_shipped"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"shadows": ["pi", "pi"]}, "pi is there twice"),
        ({"shadows": ["unknown"]}, "no policy 'unknown'"),
        ({"shadows": ["pi@no"]}, "no preset @no"),
        ({"shadows": ["pi"], "lineage": "mine"}, "next to main"),
    ],
)
def test_a_shadow_that_cannot_be_is_refused_at_once(
    session: StoredSession, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        session.loop(options=LoopOptions(**how))

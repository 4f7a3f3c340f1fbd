"""Policies that decide beside a live session: never served, never waited for, never in the way."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, ClassVar

import pytest
from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, Agent, Time, essence, live_blocks

import cutbank
from cutbank import Block, LoopOptions, SessionStore, StoredSession
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.analysis.replaying.shadows import shadow_watch_of
from cutbank.adapters.interfaces.command_line.sessions import list_all
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.errors import InvalidSettingError
from cutbank.domain.hooks import CompactionEvent, CompactionEventKind
from cutbank.domain.policies.policy import Policy
from cutbank.domain.session_events import ModelCalled
from cutbank.domain.window import Plan, Window
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.replay import replay_recording

LIMIT = 1_000
PATIENCE_S = 60


@contextmanager
def opened(time: Time) -> Iterator[SessionStore]:
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        yield store


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


# What is served


@settings(max_examples=4)
@given(steps=STEPS, beside=st.lists(st.sampled_from(every_name()), max_size=3, unique=True))
def test_what_is_served_is_what_would_be_served_without_shadows(
    steps: list[tuple[Any, ...]], beside: list[str]
) -> None:
    sent, policy = [], fitted("pi", LIMIT)
    for shadows in ((), beside):
        time = Time()
        with opened(time) as store:
            how: dict[str, Any] = {
                "policy": policy,
                "limit": LIMIT,
                "options": LoopOptions(shadows=shadows),
            }
            agent = Agent(store.session("live"), how, time)
            agent.do(steps)
            assert shadow_watch_of(store.context).wait(PATIENCE_S)
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
    time = Time()
    policy = fitted(name, LIMIT)
    with opened(time) as store:
        how: dict[str, Any] = {
            "policy": fitted("pi", 400),
            "limit": 400,
            "options": LoopOptions(shadows=[policy]),
        }
        agent = Agent(store.session("live"), how, time, usage=usage)
        for part in (*steps, [("work", [], True)]):
            agent.do(part)
            assert shadow_watch_of(store.context).wait(PATIENCE_S)
            if restarts:
                agent.session = store.session("live")
                agent.loop = agent.session.loop(**how)
        recording = read_recording(agent.session)
        terms = replace(agent.loop.request, policy=policy)
        blocks = live_blocks(agent.session)

        for served in replay_recording(recording, PolicyDecider(terms, recording), limit=400):
            told = served.call.report
            assert isinstance(told, ModelCalled)
            shown = agent.session.view(
                lineage=f"shadow:{policy.name}", at=served.call.last_seen_position
            )
            assert essence(shown, blocks) == essence(served.make_view(), blocks)


# What an agent notices


def test_an_agent_does_not_wait_for_a_shadow(store: SessionStore, session: StoredSession) -> None:
    talk(session, 3, shadows=[Waits()])

    assert Waits.asked.wait(PATIENCE_S)
    assert not shadow_watch_of(store.context).wait(0)
    assert len(session.view().entries) == 5
    Waits.answers.set()
    assert shadow_watch_of(store.context).wait(PATIENCE_S)


def test_a_shadow_that_raises_is_logged_once_and_dropped(
    store: SessionStore, session: StoredSession, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[CompactionEvent] = []
    store.listeners.append(told.append)

    with caplog.at_level(logging.ERROR, "cutbank"):
        talk(session, 5, shadows=[Raises(), "pi"])
        assert shadow_watch_of(store.context).wait(PATIENCE_S)

    (record,) = caplog.records
    assert "shadow:raises of session 'a session' failed" in record.getMessage()
    (failed,) = [one for one in told if one.lineage == "shadow:raises"]
    assert (failed.moment, failed.session) == (CompactionEventKind.FAILED, "a session")
    assert "of its own making" in (failed.reason or "")
    assert "shadow:raises" not in session.log.lineages
    assert "shadow:pi" in session.log.lineages


def test_a_listener_that_raises_ends_no_other_shadow(
    store: SessionStore, session: StoredSession
) -> None:
    def complain(_: CompactionEvent) -> None:
        raise ValueError("I do not want to know")

    store.listeners.append(complain)

    talk(session, 5, shadows=[Raises(), "pi"])

    assert shadow_watch_of(store.context).wait(PATIENCE_S)
    assert "shadow:pi" in session.log.lineages


def test_a_store_is_closed_though_a_shadow_comes_to_no_end(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    Waits.asked.clear()
    Waits.answers.clear()
    try:
        with cutbank.open(database, settings=Settings()) as store:
            shadow_watch_of(store.context).patience_s = 0.01
            talk(store.session("s"), 1, shadows=[Waits()])
            assert Waits.asked.wait(PATIENCE_S)

        assert "is still deciding" in caplog.text
    finally:
        Waits.answers.set()


def test_lists_of_sessions_say_nothing_of_shadows(
    store: SessionStore, session: StoredSession
) -> None:
    other = store.session("another")
    talk(other, 20)
    talk(session, 20, shadows=["retention-window", "pi"])
    assert shadow_watch_of(store.context).wait(PATIENCE_S)

    one, two = list_all(store, None)
    own = {"session": "", "lineages": [], "said_at": ""}
    assert {**one, **own} == {**two, **own}


# Which there are


def test_the_settings_name_shadows(database: str) -> None:
    given_settings = Settings.model_validate({"shadow": {"policies": ["pi@as_shipped"]}})
    with cutbank.open(database, settings=given_settings) as store:
        talk(store.session("s"), 20)
        assert shadow_watch_of(store.context).wait(PATIENCE_S)

        assert store.session("s").log.lineages == ["main", "shadow:pi@as_shipped"]


def test_a_loop_on_another_lineage_has_no_shadows(session: StoredSession) -> None:
    with pytest.raises(InvalidSettingError, match="next to main"):
        session.loop(options=LoopOptions(lineage="mine", shadows=["pi"]))


def test_a_shadow_that_cannot_be_is_refused_at_once(
    session: StoredSession, subtests: pytest.Subtests
) -> None:
    rows: list[tuple[list[str | Policy], str]] = [
        (["pi", "pi"], "twice"),
        (["nobody"], "nobody"),
        (["pi@no"], "no"),
    ]
    for shadows, said in rows:
        with subtests.test(str(shadows)), pytest.raises(InvalidSettingError, match=said):
            session.loop(options=LoopOptions(shadows=shadows))

"""A replay decides what an agent's loop decided, and shows what it served."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from every_policy import every_name, fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_live import STEPS, Agent, Time, essence, live_blocks

import cutbank
from cutbank import LoopOptions
from cutbank.adapters.analysis.replaying.recordings import (
    read_decisions,
    read_recording,
    store_lineage,
)
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction import MAIN_LINEAGE
from cutbank.domain.compaction_events import CompactionFailed
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.event import Event
from cutbank.domain.pins import PinRules
from cutbank.domain.ranges import Ranges
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.replay import RecordedDecider, replay_recording
from cutbank.projections.view_content import RecordedEvent

COOLS = "cooldown_seconds"
"""The setting of policies that look at the clock."""
LIMITS = st.sampled_from((150, 400, 1_000, 2_500))


@pytest.mark.slow
@pytest.mark.parametrize("name", every_name())
@settings(max_examples=12)
@given(steps=STEPS, limit=LIMITS, pins=st.booleans(), gain=st.sampled_from((0.0, 0.1, 0.4)))
def test_a_replay_decides_as_the_loop_did(
    name: str, steps: list[tuple[Any, ...]], limit: int, pins: bool, gain: float
) -> None:
    time = Time()
    given_settings = Settings.model_validate({"compaction": {"minimum_gain": gain}})
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=given_settings) as store,
    ):
        how = {
            "policy": fitted(name, limit),
            "limit": limit,
            "options": LoopOptions(pins=PinRules(first_prompt=pins)),
        }
        agent = Agent(store.session("live"), how, time)
        agent.do([*steps, ("work", [], True)])
        recording = read_recording(agent.session)

        decider = PolicyDecider(agent.loop.request, recording)
        views = [served.make_view() for served in replay_recording(recording, decider, limit=limit)]

        blocks = live_blocks(agent.session)
        assert len(views) == len(agent.sent)
        for view, sent in zip(views, agent.sent, strict=True):
            assert essence(view, blocks) == essence(sent, blocks)
        if not agent.forks:  # a fork's own lineage does not say what came to nothing before it
            live = read_decisions(agent.session, MAIN_LINEAGE)
            assert came_to_nothing(decider.events, blocks) == came_to_nothing(live, blocks)


def came_to_nothing(decisions: list[Event], blocks: Ranges) -> list[int]:
    """Where a compaction was tried in vain, by the newest block that there was."""
    return [
        max((at for at in blocks if at <= one.after), default=0)
        for one in decisions
        if isinstance(one, CompactionFailed) and one.after
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", every_name())
@settings(max_examples=6)
@given(steps=STEPS, limit=LIMITS, served=LIMITS)
def test_a_stored_what_if_shows_at_each_call_what_the_replay_said(
    name: str, steps: list[tuple[Any, ...]], limit: int, served: int
) -> None:
    time = Time()
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        how = {"policy": fitted("pi", served), "limit": served}
        agent = Agent(store.session("live"), how, time)
        agent.do([*steps, ("work", [], True)])
        recording = read_recording(agent.session)
        decider = PolicyDecider(
            CompactionTerms(fitted(name, limit), limit), recording, lineage="what if"
        )

        calls = replay_recording(recording, decider, limit=limit, lineage="what if")
        said = {call.call.last_seen_position: call.make_view() for call in calls}
        store_lineage(agent.session, "what if", decider.events)

        assert not verify(store).violations
        for position, view in said.items():
            shown = agent.session.view(lineage="what if", at=position)
            assert shown.boundary == view.boundary
            assert shown.summary == view.summary
            assert shown.entries == view.entries
            assert shown.effective_from == view.effective_from
            assert replace(view, summary_digest=shown.summary_digest).fingerprint == (
                shown.fingerprint
            )


@settings(max_examples=12)
@given(
    steps=STEPS,
    name=st.sampled_from(every_name()),
    limit=LIMITS,
    usage=st.sampled_from((None, 0.5, 3.0)),
)
def test_what_was_served_is_shown_again_as_it_was_sent(
    name: str, steps: list[tuple[Any, ...]], limit: int, usage: float | None
) -> None:
    time = Time()
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        how = {"policy": fitted(name, limit), "limit": limit}
        agent = Agent(store.session("live"), how, time, usage=usage)
        agent.do([*steps, ("work", [], True)])
        recording = read_recording(agent.session)
        decider = RecordedDecider(read_decisions(agent.session, MAIN_LINEAGE), MAIN_LINEAGE)

        views = [served.make_view() for served in replay_recording(recording, decider)]

        assert len(views) == len(agent.sent)
        for view, sent in zip(views, agent.sent, strict=True):
            assert view.entries == sent.entries
            assert view.summary == sent.summary
            assert view.tokens == sent.tokens
            # A summary's digest goes by the database's secret, which a replay does not know.
            assert replace(view, summary_digest=sent.summary_digest).fingerprint == sent.fingerprint


@settings(max_examples=8)
@given(
    steps=STEPS,
    name=st.sampled_from([name for name in every_name() if not hasattr(fitted(name, 500), COOLS)]),
    jumps=st.randoms(use_true_random=False),
)
def test_a_clock_that_jumps_changes_nothing_but_cooldowns(
    name: str, steps: list[tuple[Any, ...]], jumps: Random
) -> None:
    time = Time()
    with (
        TemporaryDirectory() as folder,
        cutbank.open(Path(folder) / "live.db", clock=time, settings=Settings()) as store,
    ):
        agent = Agent(store.session("live"), {"policy": fitted("pi", 500), "limit": 500}, time)
        agent.do([*steps, ("work", [], True)])
        recording = read_recording(agent.session)
    jumped = replace(recording, log=[at_another_time(one, jumps) for one in recording.log])
    terms = CompactionTerms(fitted(name, 500), 500)

    plain, other = (
        [
            served.make_view()
            for served in replay_recording(log, PolicyDecider(terms, log), limit=500)
        ]
        for log in (recording, jumped)
    )

    blocks = Ranges.of(one.position for one in recording.log if one.tokens)
    assert [essence(view, blocks) for view in plain] == [essence(view, blocks) for view in other]


def at_another_time(one: RecordedEvent, jumps: Random) -> RecordedEvent:
    by = timedelta(seconds=jumps.randint(-100_000, 100_000))
    return replace(one, event=one.event.model_copy(update={"timestamp": one.event.timestamp + by}))

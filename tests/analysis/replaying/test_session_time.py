"""A replay's time is that of the session: what is imported says itself when it was said."""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import cutbank
from cutbank import Block, Settings, StoredSession, Trigger, end_turn, get_policy
from cutbank.adapters.analysis.deciders import make_summary_writer
from cutbank.adapters.analysis.run_replay import read_recording
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.domain.blocks import Origin
from cutbank.domain.compaction_events import CompactBoundary
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.projections.policy_decider import PolicyDecider
from cutbank.projections.recording import Recording, SessionTime
from cutbank.projections.replay import replay_recording

BEGAN = datetime(2025, 3, 1, 12, tzinfo=UTC)


def told(session: StoredSession, minutes: list[float | None]) -> Recording:
    """A question and an answer at each of these minutes; None is one whose time is not told."""
    for number, minute in enumerate(minutes):
        time = None if minute is None else (BEGAN + timedelta(minutes=minute)).isoformat()
        origin = Origin(format="elsewhere", time=time)
        session.append(Block.user(f"question {number} " + "q" * 300, origin=origin))
        session.append(Block.assistant(f"answer {number} " + "a" * 300, origin=origin))
        end_turn(session)
    return read_recording(session)


def boundaries(recording: Recording) -> list[CompactBoundary]:
    terms = CompactionTerms(get_policy("scored-pruning", cooldown_seconds="600"), 2_000)
    decider = PolicyDecider(terms, recording, make_summary_writer(recording, SummaryChain()))
    list(replay_recording(recording, decider))
    return [one for one in decider.events if isinstance(one, CompactBoundary)]


def test_what_was_imported_cools_down_by_the_times_of_its_source(session: StoredSession) -> None:
    drawn = boundaries(told(session, list(range(120))))

    pauses = [
        one.timestamp - before.timestamp
        for before, one in pairwise(drawn)
        if one.trigger is Trigger.THRESHOLD
    ]
    assert pauses
    assert min(pauses) >= timedelta(minutes=10)
    assert all(BEGAN < one.timestamp < BEGAN + timedelta(minutes=120) for one in drawn)


def test_when_a_session_was_imported_changes_nothing() -> None:
    found: list[Any] = []
    for imported in (datetime(2026, 9, 1, tzinfo=UTC), datetime(2027, 9, 1, tzinfo=UTC)):
        clock = partial(imported.astimezone, UTC)
        with cutbank.open(":memory:", clock=clock, settings=Settings()) as store:
            found.append(boundaries(told(store.session("a session"), list(range(120)))))

    assert found[0]
    assert found[0] == found[1]


def test_a_fork_of_what_was_imported_goes_by_its_source_until_it_goes_on(
    session: StoredSession,
) -> None:
    inherited = told(session, [1, 2, 3])
    fork = session.fork("fork")
    fork.append(Block.user("on from here"))

    recording = read_recording(fork)

    time = SessionTime(recording)
    assert time.now == BEGAN + timedelta(minutes=1)
    assert time.advance(max(inherited.log)) == BEGAN + timedelta(minutes=3)
    newest = max(recording.log)
    assert time.advance(newest) == recording.log[newest].event.timestamp


def test_time_goes_forward_only(session: StoredSession) -> None:
    recording = told(session, [5, 1, None, 9])
    time = SessionTime(recording)

    passed = [time.advance(position) for position in recording.log]

    assert passed == sorted(passed)
    assert passed[0] == BEGAN + timedelta(minutes=5)
    assert passed[-1] == time.advance(1) == BEGAN + timedelta(minutes=9)


def test_what_an_agent_said_itself_was_said_when_it_was_stored(session: StoredSession) -> None:
    session.append(Block.user("hello"), Block.note("about to ask"))
    recording = read_recording(session)

    time = SessionTime(recording)

    assert time.now == recording.log[1].event.timestamp
    newest = max(recording.log)
    assert time.advance(newest) == recording.log[newest].event.timestamp

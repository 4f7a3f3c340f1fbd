"""A trace is kept beside the log, belongs to one state of it, and is made anew where it is not."""

from typing import Any

import pytest
from transcripts import NO_SESSIONS, SESSIONS, import_file, name_of, real

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.analysis.replaying import traces
from cutbank.adapters.analysis.replaying.recordings import read_recording
from cutbank.adapters.analysis.replaying.traces import read_session_trace
from cutbank.domain.compaction_terms import CompactionTerms
from cutbank.domain.pins import PinRules
from cutbank.domain.policies.catalog import build_policy
from cutbank.domain.summaries.simple_summarizers import SizedSummarizer
from cutbank.projections.replay.policy_decider import PolicyDecider
from cutbank.projections.replay.replay import replay_recording
from cutbank.projections.replay.replay_writers import ReplayWriters
from cutbank.projections.replay.token_replay import replay_by_tokens
from cutbank.projections.replay.trace import NeedsFullReplay, SessionTrace, make_trace


def talk(session: StoredSession, times: int) -> None:
    for number in range(times):
        session.append(Block.user(f"question {number} " * 20), Block.assistant("answer " * 50))


def unmade(_: Any) -> SessionTrace:
    raise AssertionError("the trace was made again")


def test_a_trace_is_made_once_and_read_back_as_it_was(
    session: StoredSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(session, 5)
    made = read_session_trace(session)
    monkeypatch.setattr(traces, "make_trace", unmade)

    assert read_session_trace(session) == made
    assert isinstance(made, SessionTrace)
    assert len(made.position) == 10


def test_a_session_that_goes_on_gets_a_new_trace(session: StoredSession) -> None:
    talk(session, 2)
    read_session_trace(session)

    talk(session, 1)

    assert read_session_trace(session) == make_trace(read_recording(session))


def test_what_another_log_had_at_the_same_position_is_not_taken_for_ours(
    session: StoredSession,
) -> None:
    talk(session, 3)
    made = read_session_trace(session)
    models = session.log.context.read_models
    with models.file.transaction() as db:
        db.execute("UPDATE traces SET digest = x'00', columns = x'00'")

    assert read_session_trace(session) == made


def test_read_models_that_are_made_anew_lose_nothing_but_time(session: StoredSession) -> None:
    talk(session, 3)
    made = read_session_trace(session)

    session.log.context.read_models.rebuild()

    assert read_session_trace(session) == made


def test_a_fork_is_left_to_a_full_replay(session: StoredSession) -> None:
    talk(session, 2)

    found = read_session_trace(session.fork("fork"))

    assert isinstance(found, NeedsFullReplay)
    assert "fork" in found.reason


@pytest.mark.skipif(not SESSIONS, reason=NO_SESSIONS)
@pytest.mark.parametrize("path", real()[::30], ids=name_of)
@pytest.mark.parametrize("name", ["reserve-headroom", "pi"])
def test_real_sessions_come_to_the_same_by_tokens_and_in_full(path: Any, name: str) -> None:
    with cutbank.open(":memory:") as store:
        import_file(store, path)
        for session in store.sessions():
            for limit in (8_000, 16_000, 64_000):
                same_by_tokens(session, name, limit)


def same_by_tokens(session: StoredSession, name: str, limit: int) -> None:
    policy, pins = build_policy(name, {}), PinRules()
    trace = read_session_trace(session)
    if isinstance(trace, NeedsFullReplay):
        return
    replay = replay_by_tokens(trace, policy, limit, 600, pins=pins)
    if isinstance(replay, NeedsFullReplay):
        return  # a view has to be made to fit, which takes a full replay
    terms = CompactionTerms(policy, limit=limit, pins=pins)
    recording = read_recording(session)
    decider = PolicyDecider(terms, recording, ReplayWriters((SizedSummarizer(600),)))
    served = list(replay_recording(recording, decider, limit=limit))

    assert replay.list_prompts() == [one.tokens for one in served]
    assert replay.list_unchanged() == [one.unchanged for one in served]
    assert [(one.call, one.first_kept) for one in replay.compactions] == [
        (call, one.boundary.first_kept)
        for call, each in enumerate(served)
        for one in each.compactions
    ]

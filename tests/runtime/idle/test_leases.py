"""Whoever holds the lease compacts; whoever lost it records what it cost, and no more."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from databases import each_database
from opened_stores import store_of
from resting import (
    GUARD_S,
    PRICE,
    RULES,
    Held,
    SetClock,
    Told,
    Working,
    decisions,
    look,
    pass_time,
    recorded,
    request_by_another,
    talk,
)

from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.idle.due_sessions import DueSession
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.domain.compaction_events import (
    CompactBoundary,
    CompactionFailed,
    CompactionRejected,
    CompactionRequested,
)

REST = RULES.idle_time_s
LEASE = 60.0
LEASED = replace(RULES, lease_s=LEASE, hourly_usd=None)
ENDS = (NoticeKind.DONE, NoticeKind.LOST)


def begun(session: StoredSession, worker: IdleWorker, held: Held, clock: SetClock) -> None:
    """The session rests, and the worker waits for its summary."""
    talk(session)
    pass_time(clock, REST)
    worker.look()
    held.wait_for_call()


def found(worker: IdleWorker, clock: SetClock) -> DueSession:
    worker.store.read_models.catch_up()
    (due,) = worker.due.find_due(clock.now, 10)
    return due


def done_once(session: StoredSession) -> None:
    """One boundary, no open request, a sound log."""
    assert len(recorded(session, CompactBoundary)) == 1
    assert session.log.compactor().decisions.read_state().requested == 0
    assert verify(store_of(session)).violations == []


@each_database
def test_a_lease_that_is_held_keeps_others_away_whatever_they_know(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    one, other = working(LEASED, name="one"), working(LEASED, name="other")
    talk(session)
    pass_time(clock, REST)
    due = found(other, clock)
    one.look()
    held.wait_for_call()

    other.look()
    assert other.running_attempts == []
    other._begin_attempt(due, clock.now)  # it has looked before the lease was there
    assert other.wait()

    (passed,) = told.about(NoticeKind.PASSED_OVER)
    assert passed.worker == "other"
    assert str(passed.reason).startswith("one is compacting it, until ")
    held.let_go()
    assert one.wait()
    assert held.calls == 1
    done_once(session)


def test_a_lease_that_ran_out_is_taken_over_and_the_late_summary_s_cost_is_recorded(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    one, other = working(LEASED, name="one"), working(LEASED, name="other")
    begun(session, one, held, clock)
    pass_time(clock, LEASE)

    look(other)
    held.let_go()
    assert one.wait()

    assert [(notice.about, notice.worker) for notice in told.about(*ENDS)] == [
        (NoticeKind.DONE, "other"),
        (NoticeKind.LOST, "one"),
    ]
    (rejected,) = recorded(session, CompactionRejected)
    assert (rejected.rule, rejected.cost_usd) == ("lost-lease", PRICE)
    assert [request.by for request in recorded(session, CompactionRequested)] == ["one", "other"]
    done_once(session)


@pytest.mark.parametrize(
    ("happens", "end"),
    [
        (lambda session, clock: pass_time(clock, 100 * LEASE), NoticeKind.DONE),  # nobody took it
        (lambda session, clock: session.compact(), NoticeKind.LOST),
        (lambda session, clock: session.append(Block.user("are you there?")), NoticeKind.DONE),
    ],
)
def test_a_lease_ends_by_what_happened_meanwhile(
    session: StoredSession,
    *,
    working: Working,
    told: Told,
    held: Held,
    clock: SetClock,
    happens: Callable[[StoredSession, SetClock], object],
    end: NoticeKind,
) -> None:
    worker = working(LEASED)
    begun(session, worker, held, clock)

    happens(session, clock)
    said = session.view().entries[-1].text
    held.let_go()
    assert worker.wait()

    assert [notice.about for notice in told.about(*ENDS)] == [end]
    assert session.view().entries[-1].text == said
    done_once(session)


def test_whatever_becomes_of_the_session_meanwhile_is_kept(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    worker = working(LEASED)
    begun(session, worker, held, clock)

    fork = session.fork("another way")
    session.log.compactor().decisions.record_failure("a policy of somebody else's")
    session.rewind(20)
    session.pin(3)
    session.close()
    state, shown = session.log.state, fork.view().fingerprint
    held.let_go()
    assert worker.wait()

    assert session.log.state == state
    assert fork.view().fingerprint == shown
    assert session.log.compactor().decisions.read_state().requested == 0
    assert verify(store_of(session)).violations == []


def test_what_is_found_due_on_old_news_is_not_tried_again(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    one, other = working(LEASED, name="one"), working(LEASED, name="other")
    talk(session)
    pass_time(clock, REST)
    due = found(other, clock)
    held.holds = 0
    look(one)

    other._begin_attempt(due, clock.now)
    assert other.wait()

    (passed,) = told.about(NoticeKind.PASSED_OVER)
    assert passed.reason == "it was compacted, or tried, since it was found due"
    done_once(session)


def test_a_worker_that_is_stopped_leaves_no_lease_and_no_attempt(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    one, other = working(LEASED), working(LEASED)
    begun(session, one, held, clock)

    assert one.stop(GUARD_S)
    (failed,) = recorded(session, CompactionFailed)
    assert failed.cancelled
    look(other)

    assert [notice.attempt for notice in told.about(NoticeKind.BEGAN)] == [1, 1]
    assert told.keys(NoticeKind.DONE) == [session.key]
    done_once(session)


def test_a_session_that_kills_whoever_compacts_it_is_given_up_until_more_is_said(
    session: StoredSession, working: Working, told: Told, held: Held, clock: SetClock
) -> None:
    held.holds = 0
    worker = working(LEASED)
    talk(session)
    for _ in range(RULES.attempts):
        pass_time(clock, REST + 3_600)
        assert found(worker, clock)
        request_by_another(session, "a worker that died", LEASE)

    pass_time(clock, timedelta(days=9).total_seconds())
    look(worker)
    assert told.keys(NoticeKind.BEGAN) == []

    session.append(Block.user("once more"))
    pass_time(clock, REST)
    look(worker)
    assert told.keys(NoticeKind.BEGAN) == [session.key]
    assert told.keys(NoticeKind.DONE) == [session.key]
    done_once(session)


def test_forks_and_what_was_decided_before_them_are_compacted_once(
    session: StoredSession, store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    worker = working(LEASED)
    talk(session)
    pass_time(clock, REST)
    look(worker)
    fork = session.fork("a fork")
    talk(fork)
    early = session.fork("an early fork", at=5)
    talk(early)
    pass_time(clock, REST)

    for _ in range(3):
        look(worker)

    assert sorted(map(str, told.keys(NoticeKind.DONE))) == ["a fork", "a session", "an early fork"]
    assert told.about(NoticeKind.PASSED_OVER) == []
    assert len(decisions(fork)) == len(decisions(early)) == len(decisions(session))

"""Whoever holds the lease compacts; whoever lost it records what it cost, and no more."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from databases import each_database
from resting import (
    GUARD_S,
    PRICE,
    RULES,
    Held,
    Idle,
    decisions,
    look,
    recorded,
    request_by_another,
    talk,
)

from cutbank import Block
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


def begun(idle: Idle, worker: IdleWorker, held: Held) -> None:
    """The session rests, and the worker waits for its summary."""
    talk(idle.session)
    idle.pass_time(REST)
    worker.look()
    held.wait_for_call()


def found(idle: Idle, worker: IdleWorker) -> DueSession:
    idle.store.read_models.catch_up()
    (due,) = worker.due.find_due(idle.clock.now, 10)
    return due


def done_once(idle: Idle) -> None:
    assert len(recorded(idle.session, CompactBoundary)) == 1
    sound(idle)


def sound(idle: Idle) -> None:
    """No open request, a sound log."""
    assert idle.session.log.compactor().decisions.read_state().requested == 0
    assert verify(idle.store).violations == []


@each_database
def test_a_lease_that_is_held_keeps_others_away_whatever_they_know(idle: Idle, held: Held) -> None:
    one, other = idle.worker(LEASED, name="one"), idle.worker(LEASED, name="other")
    talk(idle.session)
    idle.pass_time(REST)
    due = found(idle, other)
    one.look()
    held.wait_for_call()

    other.look()
    assert other.running_attempts == []
    other._begin_attempt(due, idle.clock.now)  # it has looked before the lease was there
    assert other.wait()

    (passed,) = idle.told.about(NoticeKind.PASSED_OVER)
    assert passed.worker == "other"
    assert str(passed.reason).startswith("one is compacting it, until ")
    held.let_go()
    assert one.wait()
    assert held.calls == 1
    done_once(idle)


def test_a_lease_that_ran_out_is_taken_over_and_the_late_summary_s_cost_is_recorded(
    idle: Idle, held: Held
) -> None:
    one, other = idle.worker(LEASED, name="one"), idle.worker(LEASED, name="other")
    begun(idle, one, held)
    idle.pass_time(LEASE)

    look(other)
    held.let_go()
    assert one.wait()

    assert [(notice.about, notice.worker) for notice in idle.told.about(*ENDS)] == [
        (NoticeKind.DONE, "other"),
        (NoticeKind.LOST, "one"),
    ]
    (rejected,) = recorded(idle.session, CompactionRejected)
    assert (rejected.rule, rejected.cost_usd) == ("lost-lease", PRICE)
    assert [request.by for request in recorded(idle.session, CompactionRequested)] == [
        "one",
        "other",
    ]
    done_once(idle)


@pytest.mark.parametrize(
    ("happens", "end"),
    [
        (lambda idle: idle.pass_time(100 * LEASE), NoticeKind.DONE),  # nobody took it
        (lambda idle: idle.session.compact(), NoticeKind.LOST),
        (lambda idle: idle.session.append(Block.user("are you there?")), NoticeKind.DONE),
    ],
)
def test_a_lease_ends_by_what_happened_meanwhile(
    idle: Idle, held: Held, happens: Callable[[Idle], object], end: NoticeKind
) -> None:
    worker = idle.worker(LEASED)
    begun(idle, worker, held)

    happens(idle)
    said = idle.session.view().entries[-1].text
    held.let_go()
    assert worker.wait()

    assert [notice.about for notice in idle.told.about(*ENDS)] == [end]
    assert idle.session.view().entries[-1].text == said
    done_once(idle)


def test_whatever_becomes_of_the_session_meanwhile_is_kept(idle: Idle, held: Held) -> None:
    worker = idle.worker(LEASED)
    begun(idle, worker, held)

    fork = idle.session.fork("another way")
    idle.session.log.compactor().decisions.record_failure("a policy of somebody else's")
    idle.session.rewind(20)
    idle.session.pin(3)
    idle.session.close()
    state, shown = idle.session.log.state, fork.view().fingerprint
    held.let_go()
    assert worker.wait()

    assert idle.session.log.state == state
    assert fork.view().fingerprint == shown
    sound(idle)


def test_what_is_found_due_on_old_news_is_not_tried_again(idle: Idle, held: Held) -> None:
    one, other = idle.worker(LEASED, name="one"), idle.worker(LEASED, name="other")
    talk(idle.session)
    idle.pass_time(REST)
    due = found(idle, other)
    held.holds = 0
    look(one)

    other._begin_attempt(due, idle.clock.now)
    assert other.wait()

    (passed,) = idle.told.about(NoticeKind.PASSED_OVER)
    assert passed.reason == "it was compacted, or tried, since it was found due"
    done_once(idle)


def test_a_worker_that_is_stopped_leaves_no_lease_and_no_attempt(idle: Idle, held: Held) -> None:
    one, other = idle.worker(LEASED), idle.worker(LEASED)
    begun(idle, one, held)

    assert one.stop(GUARD_S)
    (failed,) = recorded(idle.session, CompactionFailed)
    assert failed.cancelled
    look(other)

    assert [notice.attempt for notice in idle.told.about(NoticeKind.BEGAN)] == [1, 1]
    assert idle.told.keys(NoticeKind.DONE) == [idle.session.key]
    done_once(idle)


def test_a_session_that_kills_whoever_compacts_it_is_given_up_until_more_is_said(
    idle: Idle, held: Held
) -> None:
    held.holds = 0
    worker = idle.worker(LEASED)
    talk(idle.session)
    for _ in range(RULES.attempts):
        idle.pass_time(REST + 3_600)
        assert found(idle, worker)
        request_by_another(idle.session, "a worker that died", LEASE)

    idle.pass_time(timedelta(days=9).total_seconds())
    look(worker)
    assert idle.told.keys(NoticeKind.BEGAN) == []

    idle.session.append(Block.user("once more"))
    idle.pass_time(REST)
    look(worker)
    assert idle.told.keys(NoticeKind.BEGAN) == [idle.session.key]
    assert idle.told.keys(NoticeKind.DONE) == [idle.session.key]
    done_once(idle)


def test_forks_and_what_was_decided_before_them_are_compacted_once(idle: Idle) -> None:
    worker = idle.worker(LEASED)
    talk(idle.session)
    idle.pass_time(REST)
    look(worker)
    fork = idle.session.fork("a fork")
    talk(fork)
    early = idle.session.fork("an early fork", at=5)
    talk(early)
    idle.pass_time(REST)

    for _ in range(3):
        look(worker)

    assert sorted(map(str, idle.told.keys(NoticeKind.DONE))) == [
        "a fork",
        "a session",
        "an early fork",
    ]
    assert idle.told.about(NoticeKind.PASSED_OVER) == []
    assert len(decisions(fork)) == len(decisions(early)) == len(decisions(idle.session))

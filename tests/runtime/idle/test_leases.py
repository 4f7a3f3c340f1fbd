"""Whoever holds the lease compacts; whoever lost it records what it cost, and no more."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from databases import each_database
from resting import (
    GUARD_S,
    RULES,
    Held,
    Idle,
    decisions,
    look,
    recorded,
    request_by_another,
    talk,
)

from cutbank import Block, verify
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.domain.compaction_events import (
    CompactBoundary,
    CompactionFailed,
)

REST = RULES.idle_time_s
LEASE = 60.0
LEASED = replace(RULES, lease_s=LEASE, hourly_usd=None)
ENDS = (NoticeKind.DONE, NoticeKind.LOST)


@pytest.fixture
def one(idle: Idle) -> IdleWorker:
    """A worker, and a session that is due."""
    talk(idle.session)
    idle.pass_time(REST)
    return idle.worker(LEASED, name="one")


@pytest.fixture
def other(idle: Idle) -> IdleWorker:
    return idle.worker(LEASED, name="other")


def begin(worker: IdleWorker, held: Held) -> None:
    """Have the worker wait for its summary."""
    worker.look()
    held.wait_for_call()


def check_log(idle: Idle, boundaries: int = 1) -> None:
    """No open request, a sound log, and so many compactions."""
    assert len(recorded(idle.session, CompactBoundary)) == boundaries
    assert idle.session.log.compactor().decisions.read_state().requested == 0
    assert verify(idle.store).violations == []


PASSED_OVER = {
    "a lease is held": "one is compacting it, until ",
    "it was compacted": "it was compacted, or tried, since it was found due",
    "more was said": "the session had new activity meanwhile",
}


@each_database
@pytest.mark.parametrize("happens", PASSED_OVER)
def test_what_is_found_due_on_old_news_is_passed_over(
    idle: Idle, held: Held, one: IdleWorker, other: IdleWorker, happens: str
) -> None:
    due = idle.find_due(other)
    held.holds = int(happens == "a lease is held")
    match happens:
        case "a lease is held":
            begin(one, held)
            other.look()
            assert other.running_attempts == []
        case "it was compacted":
            look(one)
        case _:
            idle.session.append(Block.user("one more thing"))

    other._begin_attempt(due, idle.clock.now)
    assert other.wait()

    (passed,) = idle.told.about(NoticeKind.PASSED_OVER)
    assert passed.worker == "other"
    assert str(passed.reason).startswith(PASSED_OVER[happens])
    held.let_all_go()
    assert one.wait()
    check_log(idle, boundaries=held.calls)


@pytest.mark.parametrize(
    ("happens", "end"),
    [
        (lambda idle: idle.pass_time(100 * LEASE), NoticeKind.DONE),  # nobody took it
        (lambda idle: idle.session.compact(), NoticeKind.LOST),
        (lambda idle: idle.session.append(Block.user("are you there?")), NoticeKind.DONE),
    ],
)
def test_a_lease_ends_by_what_happened_meanwhile(
    idle: Idle, held: Held, one: IdleWorker, happens: Callable[[Idle], object], end: NoticeKind
) -> None:
    begin(one, held)

    happens(idle)
    said = idle.session.view().entries[-1].text
    held.let_go()
    assert one.wait()

    assert [notice.about for notice in idle.told.about(*ENDS)] == [end]
    assert idle.session.view().entries[-1].text == said
    check_log(idle)


def test_whatever_becomes_of_the_session_meanwhile_is_kept(
    idle: Idle, held: Held, one: IdleWorker
) -> None:
    begin(one, held)

    fork = idle.session.fork("another way")
    idle.session.log.compactor().decisions.record_failure("a policy of somebody else's")
    idle.session.retract(after=20)
    idle.session.pin(3)
    idle.session.close()
    state, shown = idle.session.log.state, fork.view().fingerprint
    held.let_go()
    assert one.wait()

    assert idle.session.log.state == state
    assert fork.view().fingerprint == shown
    check_log(idle)


def test_a_worker_that_is_stopped_leaves_no_lease_and_no_attempt(
    idle: Idle, held: Held, one: IdleWorker, other: IdleWorker
) -> None:
    begin(one, held)

    assert one.stop(GUARD_S)
    (failed,) = recorded(idle.session, CompactionFailed)
    assert failed.cancelled
    look(other)

    assert [notice.attempt for notice in idle.told.about(NoticeKind.BEGAN)] == [1, 1]
    check_log(idle)


def test_a_session_that_kills_whoever_compacts_it_is_given_up_until_more_is_said(
    idle: Idle, held: Held
) -> None:
    held.holds = 0
    worker = idle.worker(LEASED)
    talk(idle.session)
    for _ in range(RULES.attempts):
        idle.pass_time(REST + 3_600)
        assert idle.find_due(worker)
        request_by_another(idle.session, "a worker that died", LEASE)

    idle.pass_time(timedelta(days=9).total_seconds())
    look(worker)
    assert idle.told.keys(NoticeKind.BEGAN) == []

    idle.session.append(Block.user("once more"))
    idle.pass_time(REST)
    look(worker)
    assert idle.told.keys(NoticeKind.BEGAN) == [idle.session.key]
    assert idle.told.keys(NoticeKind.DONE) == [idle.session.key]
    check_log(idle)


def test_forks_and_what_was_decided_before_them_are_compacted_once(
    idle: Idle, one: IdleWorker
) -> None:
    look(one)
    forks = [idle.session.fork("a fork"), idle.session.fork("an early fork", at=5)]
    for fork in forks:
        talk(fork)
    idle.pass_time(REST)

    for _ in range(3):
        look(one)

    assert set(idle.told.keys(NoticeKind.DONE)) == {"a session", "a fork", "an early fork"}
    assert idle.told.about(NoticeKind.PASSED_OVER) == []
    assert {len(decisions(fork)) for fork in forks} == {len(decisions(idle.session))}

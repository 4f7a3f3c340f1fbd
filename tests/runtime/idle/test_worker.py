"""A worker compacts what rests, once, and leaves alone what does not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from opened_stores import store_of
from resting import PRICE, RULES, Held, SetClock, Told, Working, look, pass_time, recorded, talk

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.idle.attempt import IdleAttempt
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome, TaskReport
from cutbank.domain.compaction_events import Summary
from cutbank.domain.errors import StorageError
from cutbank.domain.idle_rules import QuietHours
from cutbank.domain.session_events import Parent

REST = RULES.idle_time_s


def test_a_session_is_compacted_once_it_rests(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    before = session.view().tokens
    worker = working()

    look(worker)
    assert told.keys(NoticeKind.BEGAN) == []
    pass_time(clock, REST)
    look(worker)
    worker.look()

    (done,) = told.about(NoticeKind.DONE)
    assert (done.session, done.pre_tokens) == (session.key, before)
    assert session.view().tokens == done.post_tokens
    assert session.view().tokens < before
    assert told.about(NoticeKind.LOOKED)[-1].due == 0


def test_nothing_is_begun_while_a_session_is_not_at_rest(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    calling, sleeping, closed, working_for, small = (
        store.session(key, parent=parent)
        for key, parent in (
            ("calling", None),
            ("sleeping", None),
            ("closed", None),
            ("working for", Parent(namespace="default", key="small")),
            ("small", None),
        )
    )
    for session in (calling, sleeping, closed, working_for):
        talk(session)
    calling.append(ToolCall(tool_call_id="c1", name="make", arguments="{}"))
    sleeping.schedule_wake(clock.now + timedelta(hours=2))
    closed.close()
    small.append(Block.user("hello"))
    worker = working()
    pass_time(clock, 2 * REST)

    look(worker)
    assert told.keys(NoticeKind.BEGAN) == []

    sleeping.schedule_wake(None)
    calling.append(ToolResult(tool_call_id="c1", content="made"))
    pass_time(clock, REST)
    look(worker)
    assert sorted(map(str, told.keys(NoticeKind.DONE))) == ["calling", "sleeping"]


def test_a_session_in_which_something_is_said_meanwhile_is_looked_at_later(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, REST)
    session.log.context.read_models.catch_up()
    (found,) = worker.due.find_due(clock.now, 10)
    session.append(Block.user("one more thing"))

    worker._begin_attempt(found, clock.now)
    assert worker.wait()

    (passed,) = told.about(NoticeKind.PASSED_OVER)
    assert passed.reason == "the session had new activity meanwhile"
    worker.look()
    assert told.about(NoticeKind.LOOKED)[-1].due == 0


def test_a_worker_waits_where_it_cannot_note_what_it_passed_over(
    session: StoredSession,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session.append(Block.user("word " * 20_000))
    worker = working()
    pass_time(clock, REST)

    def fails(_: object) -> None:
        raise StorageError("the disk of the read models is full")

    monkeypatch.setattr(worker.due, "pass_over", fails)
    now = clock.now
    monkeypatch.setattr(session.log.events, "clock", lambda: now)  # which does not move
    look(worker)
    again = look(worker)

    assert len(told.about(NoticeKind.BEGAN)) == len(told.about(NoticeKind.PASSED_OVER)) == 1
    (away,) = told.about(NoticeKind.DATABASE_AWAY)
    assert away.reason == "the disk of the read models is full"
    assert again > now


def test_no_more_sessions_are_begun_than_a_worker_may(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    for number in range(5):
        talk(store.session(f"s{number}"))
    worker = working(replace(RULES, concurrency=2))
    most = 0
    worker.on_free = lambda: None
    pass_time(clock, REST)

    while not told.about(NoticeKind.LOOKED) or told.about(NoticeKind.LOOKED)[-1].due:
        worker.look()
        most = max(most, len(worker.running_attempts))
        assert worker.wait()

    assert most <= 2
    assert sorted(map(str, told.keys(NoticeKind.DONE))) == [f"s{number}" for number in range(5)]


def test_a_session_that_cost_what_it_may_is_summarized_by_rules(
    session: StoredSession, working: Working, held: Held, clock: SetClock
) -> None:
    held.holds = 0
    worker = working(replace(RULES, session_usd=PRICE, hourly_usd=None))
    for _ in range(2):
        talk(session)
        pass_time(clock, REST)
        look(worker)

    writers = [summary.summarizer for summary in recorded(session, Summary)]
    assert (writers, held.calls) == (["held", "extractive"], 1)


class Sweeping(Maintenance):
    """Maintenance with one chore, which sweeps until it is told that there is something better."""

    def __init__(self, due: datetime) -> None:
        self.due = due
        self.swept: list[bool] = []
        """For each run, whether it could go on."""

    def find_next_time(self) -> datetime:
        return self.due

    def run_due(self, now: datetime, go_on: Callable[[], bool] = lambda: True) -> list[TaskReport]:
        self.swept.append(go_on())
        self.due = now + timedelta(days=1)
        return [TaskReport("sweep", TaskOutcome.DONE, now, took_s=1.0, next_at=self.due)]


def test_chores_are_done_where_no_session_is_due(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    worker.maintenance = upkeep = Sweeping(due=clock.now)
    pass_time(clock, REST)

    worker.look()  # the session comes first
    assert worker.wait()
    assert (told.keys(NoticeKind.DONE), upkeep.swept) == ([session.key], [])
    look(worker)
    look(worker)

    assert upkeep.swept == [True]
    (done,) = told.about(NoticeKind.CHORE_DONE)
    assert (done.chore, done.next_at) == ("sweep", upkeep.due)


def test_chores_wait_for_the_end_of_quiet_hours(
    working: Working, told: Told, clock: SetClock
) -> None:
    quiet = QuietHours(time(0), time(6), UTC)
    worker = working(replace(RULES, quiet_hours=quiet))
    worker.maintenance = upkeep = Sweeping(due=clock.now)

    look(worker)
    assert upkeep.swept == []
    pass_time(clock, 6 * 3_600)
    look(worker)

    assert upkeep.swept == [True]


@pytest.mark.parametrize(("rest", "is_cold"), [(REST, False), (3_600 + REST, True)])
def test_a_cache_that_no_provider_keeps_so_long_is_not_reckoned_as_broken(
    session: StoredSession, working: Working, clock: SetClock, rest: float, is_cold: bool
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, rest)
    session.log.context.read_models.catch_up()
    (found,) = worker.due.find_due(clock.now, 10)

    order = IdleAttempt(
        store_of(session), worker.due, found, worker.rules, worker.name
    ).make_request()

    seen = session.log.compactor().planner.take_snapshot(order)
    assert order.cache_is_cold == is_cold
    assert seen.window.cached == (0 if is_cold else None)

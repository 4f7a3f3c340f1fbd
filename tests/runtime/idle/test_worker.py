"""Workers compact what rests, each by its own rules, and leave alone what does not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from opened_stores import store_of
from resting import (
    PRICE,
    RULES,
    Held,
    SetClock,
    Told,
    Working,
    look,
    pass_time,
    recorded,
    request_by_another,
    talk,
)

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.idle import idle_worker as worker_module
from cutbank.adapters.runtime.idle.attempt import BUSY_PAUSE, IdleAttempt
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome, TaskReport
from cutbank.domain.compaction_events import Summary
from cutbank.domain.errors import StorageError
from cutbank.domain.idle_rules import QuietHours
from cutbank.domain.session_events import Parent

REST = RULES.idle_time_s


def test_nothing_is_begun_while_a_session_is_not_at_rest(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    calling, sleeping, closed = map(store.session, ("calling", "sleeping", "closed"))
    parent = Parent(namespace="default", key="calling")
    for session in (calling, sleeping, closed, store.session("working for", parent=parent)):
        talk(session)
    calling.append(ToolCall(tool_call_id="c1", name="make", arguments="{}"))
    sleeping.schedule_wake(clock.now + timedelta(hours=2))
    closed.close()
    store.session("small").append(Block.user("hello"))
    worker = working()
    pass_time(clock, 2 * REST)

    look(worker)
    assert told.keys(NoticeKind.BEGAN) == []

    sleeping.schedule_wake(None)
    calling.append(ToolResult(tool_call_id="c1", content="made"))
    pass_time(clock, REST)
    look(worker)
    assert sorted(map(str, told.keys(NoticeKind.DONE))) == ["calling", "sleeping"]
    done = told.about(NoticeKind.DONE)[-1]
    assert store.session(str(done.session)).view().tokens == done.post_tokens


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

    writers = [summary.summariser for summary in recorded(session, Summary)]
    assert (writers, held.calls) == (["held", "extractive"], 1)


class Sweeping(Maintenance):
    """Maintenance with two chores, which notes at each run whether it may go on."""

    def __init__(self, due: datetime) -> None:
        self.due = due
        self.swept: list[bool] = []

    def find_next_time(self) -> datetime:
        return self.due

    def run_due(self, now: datetime, go_on: Callable[[], bool] = lambda: True) -> list[TaskReport]:
        self.swept.append(go_on())
        self.due = now + timedelta(days=1)
        return [
            TaskReport("sweep", TaskOutcome.DONE, now, took_s=1.0, next_at=self.due),
            TaskReport("mend", TaskOutcome.FAILED, now, 1.0, self.due, reason="no thread"),
        ]


def test_chores_are_done_where_no_session_is_due_and_hours_are_not_quiet(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    quiet = QuietHours(time(0), time(6), UTC)
    worker = working(replace(RULES, quiet_hours=quiet))
    worker.maintenance = upkeep = Sweeping(due=clock.now)

    look(worker)
    assert upkeep.swept == []
    pass_time(clock, 6 * 3_600)
    worker.look()  # the session comes first
    assert worker.wait()
    assert (told.keys(NoticeKind.DONE), upkeep.swept) == ([session.key], [])
    look(worker)
    look(worker)

    assert upkeep.swept == [True]
    (done,) = told.about(NoticeKind.CHORE_DONE)
    assert (done.chore, done.next_at) == ("sweep", upkeep.due)
    (failed,) = told.about(NoticeKind.CHORE_FAILED)
    assert (failed.chore, failed.reason) == ("mend", "no thread")


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


LONG = replace(RULES, idle_time_s=3_000)


def test_nothing_that_a_worker_asks_reads_a_whole_table(
    store: SessionStore, working: Working, clock: SetClock
) -> None:
    talk(store.session("due"))
    working()
    pass_time(clock, 600)
    models = store.read_models
    models.catch_up(search=False)
    namespaces = ("default", "another")
    sessions, asked = DueSessionIndex(models, namespaces), list[str]()

    connection = models.file.reader.conn
    connection.set_trace_callback(asked.append)
    (due,) = sessions.find_due(clock.now, 4)
    assert sessions.count_due(clock.now) == 1
    assert sessions.find_next_due(clock.now - timedelta(hours=1)) == due.due_at
    sessions.find_model(due)
    sessions.read_session_spend(due)
    sessions.find_affordable_time(clock.now, 1.0)
    connection.set_trace_callback(None)

    assert len(asked) == 3 * len(namespaces) + 3
    steps = [
        step for query in asked for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert steps
    assert [step for step in steps if step.startswith("SCAN")] == []


# Workers with other rules


def test_who_began_last_makes_nobody_hasty_and_keeps_nobody_waiting(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    for namespace in ("ours", "theirs"):
        talk(store.session("s", namespace=namespace))
    hasty = working(replace(RULES, namespaces=("ours",)), name="hasty")
    patient = working(replace(LONG, namespaces=("theirs",)), name="patient")
    pass_time(clock, 400)

    for worker in (hasty, patient):
        next_at = look(worker)
    assert [notice.worker for notice in told.about(NoticeKind.DONE)] == ["hasty"]
    assert told.about(NoticeKind.LOOKED)[0].due == 1
    assert next_at > clock.now

    working(RULES, name="as hasty")
    look(patient)
    assert [notice.namespace for notice in told.about(NoticeKind.BEGAN)] == ["ours"]
    pass_time(clock, 3_000)
    look(patient)
    assert [notice.namespace for notice in told.about(NoticeKind.DONE)] == ["ours", "theirs"]


def test_it_is_told_once_and_again_after_it_was_put_right(
    store: SessionStore, working: Working, told: Told
) -> None:
    first = working(name="first")
    second = working(LONG, name="second")
    for _ in range(3):
        first.look()
        second.look()
    assert [notice.worker for notice in told.about(NoticeKind.SETTINGS_DIFFER)] == ["first"]

    working(RULES)
    first.look()
    working(LONG)
    first.look()
    first.look()

    assert len(told.about(NoticeKind.SETTINGS_DIFFER)) == 2


def test_what_was_passed_over_is_not_looked_at_again(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    store.session("one block").append(Block.user("word " * 20_000))
    first = working(name="first")
    working(LONG, name="second")
    pass_time(clock, RULES.idle_time_s)

    for _ in range(3):
        look(first)

    assert len(told.about(NoticeKind.PASSED_OVER)) == 1
    assert told.about(NoticeKind.LOOKED)[-1].due == 0


def test_who_has_met_others_begins_somewhere_else_until_nothing_is_due(
    store: SessionStore,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def talk_in(*keys: str) -> None:
        for key in keys:
            talk(store.session(key))
            clock.now += timedelta(seconds=1)
        pass_time(clock, RULES.idle_time_s)

    def faster(notice: WorkerNotice) -> None:
        if notice.about is NoticeKind.BEGAN and notice.session == "first":
            request_by_another(store.session("first"))

    worker = working(replace(RULES, concurrency=1))
    monkeypatch.setattr(worker_module, "shuffle", list.reverse)  # in place of the lot
    worker.listeners.append(faster)
    talk_in("first", "second", "third")
    for _ in range(4):
        look(worker)
    assert told.keys(NoticeKind.PASSED_OVER) == ["first"]
    assert told.keys(NoticeKind.DONE) == ["third", "second"]

    pass_time(clock, BUSY_PAUSE.total_seconds())
    look(worker)  # nothing is due now
    talk_in("fifth", "sixth")
    for _ in range(3):
        look(worker)
    assert told.keys(NoticeKind.DONE)[2:] == ["fifth", "sixth"]

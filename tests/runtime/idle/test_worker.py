"""Workers compact what rests, each by its own rules, and leave alone what does not."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from resting import PRICE, RULES, Held, Idle, look, recorded, talk

from cutbank import Block, Parent, StorageError
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex, IdleAttempt
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.adapters.runtime.maintenance import Backups, ChoreStatus
from cutbank.domain.compaction_events import Summary
from cutbank.domain.idle_rules import QuietHours

REST = RULES.idle_time_s


def test_a_sub_agent_and_a_session_that_would_gain_nothing_are_left_alone(idle: Idle) -> None:
    parent = Parent(namespace="default", key="small")
    talk(idle.store.session("agent", parent=parent))
    idle.store.session("small").append(Block.user("hello"))
    worker = idle.worker()
    idle.pass_time(2 * REST)

    look(worker)

    assert idle.told.keys(NoticeKind.BEGAN) == []


def test_a_worker_waits_where_it_cannot_note_what_it_passed_over(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle.session.append(Block.user("word " * 20_000))
    worker = idle.worker()
    idle.pass_time(REST)

    def fails(_: object) -> None:
        raise StorageError("the disk of the read models is full")

    monkeypatch.setattr(worker.due, "pass_over", fails)
    now = idle.clock.now
    monkeypatch.setattr(idle.session.log.events, "clock", lambda: now)  # which does not move
    look(worker)
    again = look(worker)

    assert len(idle.told.about(NoticeKind.BEGAN)) == 1
    (away,) = idle.told.about(NoticeKind.DATABASE_AWAY)
    assert away.reason == "the disk of the read models is full"
    assert again > now


def test_no_more_sessions_are_begun_than_a_worker_may(idle: Idle) -> None:
    keys = {f"s{number}" for number in range(5)}
    for key in keys:
        talk(idle.store.session(key))
    worker = idle.worker(replace(RULES, concurrency=2))
    worker.on_free = lambda: None
    idle.pass_time(REST)

    for _ in range(3):
        worker.look()
        assert len(worker.running_attempts) <= 2
        assert worker.wait()

    assert set(idle.told.keys(NoticeKind.DONE)) == keys


def test_a_session_that_cost_what_it_may_is_summarized_by_rules(idle: Idle, held: Held) -> None:
    held.holds = 0
    worker = idle.worker(replace(RULES, session_usd=PRICE, hourly_usd=None))
    for _ in range(2):
        talk(idle.session)
        idle.pass_time(REST)
        look(worker)

    writers = [summary.summarizer for summary in recorded(idle.session, Summary)]
    assert (writers, held.calls) == (["held", "extractive"], 1)


def test_work_goes_on_when_less_than_the_budget_is_left_in_the_hour(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = idle.clock.now
    spent = [(now - timedelta(minutes=ago), 0.5) for ago in (50, 40, 30)]
    index = DueSessionIndex(idle.store.read_models, RULES)
    monkeypatch.setattr(index, "list_spend_since", lambda _: spent)

    assert index.find_affordable_time(now, 1.5) == now + timedelta(minutes=10)
    assert index.find_affordable_time(now, 1.0) == now + timedelta(minutes=20)
    assert index.find_affordable_time(now, 1.6) is None


class FailingFirst(Backups):
    """Backups of which the first fails."""

    def __init__(self, due: datetime) -> None:
        self.due = due
        self.runs = 0

    def find_next_time(self) -> datetime:
        return self.due

    def run_due(self, now: datetime) -> ChoreStatus:
        self.runs += 1
        self.due = now + timedelta(seconds=10)
        if self.runs == 1:
            return ChoreStatus(now, 1.0, "failed", "no thread", 1, self.due)
        return ChoreStatus(now, 1.0, "done", None, 0, self.due)


def test_backups_are_made_where_no_session_is_due_and_hours_are_not_quiet(idle: Idle) -> None:
    talk(idle.session)
    quiet = QuietHours(time(0), time(6), UTC)
    worker = idle.worker(replace(RULES, quiet_hours=quiet))
    worker.backups = backups = FailingFirst(due=idle.clock.now)

    look(worker)
    assert backups.runs == 0
    idle.pass_time(6 * 3_600)
    worker.look()  # the session comes first
    assert worker.wait()
    assert (idle.told.keys(NoticeKind.DONE), backups.runs) == ([idle.session.key], 0)
    look(worker)
    look(worker)

    assert backups.runs == 1
    (failed,) = idle.told.about(NoticeKind.CHORE_FAILED)
    assert (failed.chore, failed.reason, failed.next_at) == ("backup", "no thread", backups.due)
    idle.pass_time(10)
    look(worker)
    (done,) = idle.told.about(NoticeKind.CHORE_DONE)
    assert (done.chore, done.next_at) == ("backup", backups.due)


@pytest.mark.parametrize(("rest", "is_cold"), [(REST, False), (3_600 + REST, True)])
def test_a_cache_that_no_provider_keeps_so_long_is_not_reckoned_as_broken(
    idle: Idle, rest: float, is_cold: bool
) -> None:
    talk(idle.session)
    worker = idle.worker()
    idle.pass_time(rest)
    due = idle.find_due(worker)

    order = IdleAttempt(
        idle.store, worker.due, due, worker.rules, worker.name, idle.clock.now
    ).make_request()

    seen = idle.session.log.compactor().take_snapshot(order)
    assert order.cache_is_cold == is_cold
    assert seen.window.cached == (0 if is_cold else None)


LONG = replace(RULES, idle_time_s=3_000)


def test_nothing_that_a_worker_asks_reads_a_whole_table(idle: Idle) -> None:
    talk(idle.store.session("due"))
    talk(idle.store.session("due as well", namespace="another"))
    idle.worker()
    idle.pass_time(600)
    models = idle.store.read_models
    models.catch_up(search=False)
    sessions, asked = DueSessionIndex(models, RULES), list[str]()

    connection = models.file.db.conn
    connection.set_trace_callback(asked.append)
    due, also = sessions.find_due(idle.clock.now)
    assert sessions.find_due(idle.clock.now - timedelta(hours=1)) == []
    assert DueSessionIndex(models, RULES, limit=1_000).find_waiting() == [due, also]
    assert DueSessionIndex(models, RULES, limit=1_000_000).find_waiting() == []
    sessions.find_model(due)
    sessions.read_session_spend(due)
    sessions.find_affordable_time(idle.clock.now, 1.0)
    connection.set_trace_callback(None)

    assert len(asked) == 7
    steps = [
        step for query in asked for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {query}")
    ]
    assert steps
    assert [step for step in steps if step.startswith("SCAN") and "undecided" not in step] == []


def test_each_worker_looks_by_its_own_rules_and_changes_no_row_by_it(idle: Idle) -> None:
    for namespace in ("ours", "theirs"):
        talk(idle.store.session("s", namespace=namespace))
    hasty = idle.worker(replace(RULES, namespaces=("ours",)), name="hasty")
    patient = idle.worker(replace(LONG, namespaces=("theirs",)), name="patient")
    idle.pass_time(400)

    look(hasty)
    look(patient)
    models = idle.store.read_models
    before = models.file.db.conn.total_changes
    for worker in (hasty, patient):
        next_at = look(worker)
    assert models.file.db.conn.total_changes == before
    assert [notice.namespace for notice in idle.told.about(NoticeKind.DONE)] == ["ours"]
    assert next_at > idle.clock.now
    idle.pass_time(3_000)
    look(patient)
    assert [notice.namespace for notice in idle.told.about(NoticeKind.DONE)] == ["ours", "theirs"]


def test_what_was_said_since_a_session_was_found_due_is_not_passed_over(idle: Idle) -> None:
    talk(idle.session)
    worker = idle.worker()
    idle.pass_time(REST)
    due = idle.find_due(worker)
    idle.session.append(Block.user("one more thing"))
    idle.pass_time(REST)
    idle.store.read_models.catch_up()

    worker.due.pass_over(due)

    assert idle.find_due(worker).position > due.position


def test_what_was_passed_over_is_not_looked_at_again(idle: Idle) -> None:
    idle.store.session("one block").append(Block.user("word " * 20_000))
    worker = idle.worker()
    idle.pass_time(RULES.idle_time_s)

    for _ in range(3):
        look(worker)

    assert len(idle.told.about(NoticeKind.PASSED_OVER)) == 1
    assert idle.told.about(NoticeKind.LOOKED)[-1].due == 0

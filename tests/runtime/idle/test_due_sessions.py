"""Workers find what is due by indexes, each by its own rules, and keep out of each other's way."""

from dataclasses import replace
from datetime import timedelta

import pytest
from resting import RULES, SetClock, Told, Working, look, pass_time, request_by_another, talk

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle import idle_worker as worker_module
from cutbank.adapters.runtime.idle.attempt import BUSY_PAUSE
from cutbank.adapters.runtime.idle.due_sessions import DueSessionIndex
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice

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

"""Whoever asks is told how idle work stands, by any process, from the read models alone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from opened_stores import store_of
from resting import RULES, SetClock, Working, look, pass_time, request_by_another, talk

from cutbank import SessionStore, StoredSession
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_status import IdleStatus, read_idle_status
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.idle_rules import IdleRules

REST = RULES.idle_time_s


def status(store: SessionStore, clock: SetClock, rules: IdleRules = RULES) -> IdleStatus:
    store.read_models.catch_up(search=False)
    return read_idle_status(store.read_models, rules, clock.now, 10)


def test_what_is_due_waits_longest_first_and_what_rests_is_next(
    store: SessionStore, working: Working, clock: SetClock
) -> None:
    working()  # the file is reckoned with its rules
    talk(store.session("one"))
    pass_time(clock, 60)
    talk(store.session("two"))
    pass_time(clock, REST - 60)
    resting = status(store, clock)
    pass_time(clock, 90)

    said = status(store, clock)

    assert [due.session for due in resting.due_sessions] == ["one"]
    assert resting.next_due is not None
    assert resting.next_due > clock.now - timedelta(seconds=90)
    assert [due.session for due in said.due_sessions] == ["one", "two"]
    assert said.due_sessions[0].attempts_left == RULES.attempts


def test_whoever_is_at_a_session_is_named_until_the_lease_ends(
    session: StoredSession, clock: SetClock
) -> None:
    talk(session)
    request_by_another(session, "a worker")

    (running,) = status(store_of(session), clock).running
    pass_time(clock, 601)

    assert (running.session, running.worker) == (session.key, "a worker")
    assert running.until - running.since == timedelta(seconds=600)
    assert status(store_of(session), clock).running == ()


def test_what_was_done_and_what_waits_for_the_threshold_is_counted_and_named(
    store: SessionStore, working: Working, clock: SetClock
) -> None:
    talk(store.session("served"))
    worker = working(name="w1")
    pass_time(clock, REST)
    look(worker)
    talk(store.session("prepared"))
    worker = working(replace(RULES, activate=False), name="w1")
    pass_time(clock, 2 * REST)
    look(worker)

    said = status(store, clock)
    pass_time(clock, 86_400)

    assert (said.done, said.done_in_day, said.prepared) == (2, 2, 1)
    assert [(done.session, done.worker) for done in said.done_lately] == [
        ("prepared", "w1"),
        ("served", "w1"),
    ]
    (waiting,) = said.prepared_boundaries
    assert (waiting.session, waiting.lineage) == ("prepared", "main")
    assert waiting.post_tokens < waiting.pre_tokens
    assert status(store, clock).done_in_day == 0
    assert status(store, clock).done == 2


def test_failures_are_told_with_their_reasons_and_what_is_left_to_try(
    session: StoredSession, working: Working, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise SummarizerFailedError("the provider is away")

    monkeypatch.setattr(SummaryChain, "write", fails)
    talk(session)
    worker = working(name="w1")
    found = []
    for _ in range(RULES.attempts):
        pass_time(clock, REST)
        look(worker)
        found.append(status(store_of(session), clock))

    first, second, last = found
    (failed,) = first.failed_lately
    assert (failed.reason, failed.worker) == ("the provider is away", "w1")
    assert (first.failing, first.given_up) == (1, 0)
    assert failed.attempts_left == RULES.attempts - 1
    assert failed.next_at is not None
    assert failed.next_at > clock.now - timedelta(seconds=2 * REST)
    assert (last.failing, last.given_up, len(last.failed_lately)) == (1, 1, 3)
    assert [one.next_at is None for one in second.failed_lately] == [False, True]
    assert [one.next_at for one in last.failed_lately] == [None, None, None]

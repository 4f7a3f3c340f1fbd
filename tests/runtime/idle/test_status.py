"""Whoever asks is told how idle work stands, by any process, from the read models alone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from resting import RULES, Idle, look, request_by_another, talk

from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_status import IdleStatus, read_idle_status
from cutbank.domain.errors import SummarizerFailedError

REST = RULES.idle_time_s


def status(idle: Idle) -> IdleStatus:
    idle.store.read_models.catch_up(search=False)
    return read_idle_status(idle.store.read_models, RULES, idle.clock.now, 10)


def test_what_is_due_waits_longest_first_and_what_rests_is_next(idle: Idle) -> None:
    idle.worker()  # the file is reckoned with its rules
    talk(idle.store.session("one"))
    idle.pass_time(60)
    talk(idle.store.session("two"))
    idle.pass_time(REST - 60)
    resting = status(idle)
    idle.pass_time(90)

    said = status(idle)

    assert [due.session for due in resting.due_sessions] == ["one"]
    assert resting.next_due is not None
    assert resting.next_due > idle.clock.now - timedelta(seconds=90)
    assert [due.session for due in said.due_sessions] == ["one", "two"]
    assert said.due_sessions[0].attempts_left == RULES.attempts


def test_whoever_is_at_a_session_is_named_until_the_lease_ends(idle: Idle) -> None:
    talk(idle.session)
    request_by_another(idle.session, "a worker")

    (running,) = status(idle).running
    idle.pass_time(601)

    assert (running.session, running.worker) == (idle.session.key, "a worker")
    assert running.until - running.since == timedelta(seconds=600)
    assert status(idle).running == ()


def test_what_was_done_and_what_waits_for_the_threshold_is_counted_and_named(idle: Idle) -> None:
    talk(idle.store.session("served"))
    worker = idle.worker(name="w1")
    idle.pass_time(REST)
    look(worker)
    talk(idle.store.session("prepared"))
    worker = idle.worker(replace(RULES, activate=False), name="w1")
    idle.pass_time(2 * REST)
    look(worker)

    said = status(idle)
    idle.pass_time(86_400)

    assert (said.done, said.done_in_day, said.prepared) == (2, 2, 1)
    assert [(done.session, done.worker) for done in said.done_lately] == [
        ("prepared", "w1"),
        ("served", "w1"),
    ]
    (waiting,) = said.prepared_boundaries
    assert (waiting.session, waiting.lineage) == ("prepared", "main")
    assert waiting.post_tokens < waiting.pre_tokens
    assert status(idle).done_in_day == 0
    assert status(idle).done == 2


def test_failures_are_told_with_their_reasons_and_what_is_left_to_try(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise SummarizerFailedError("the provider is away")

    monkeypatch.setattr(SummaryChain, "write", fails)
    talk(idle.session)
    worker = idle.worker(name="w1")
    found = []
    for _ in range(RULES.attempts):
        idle.pass_time(REST)
        look(worker)
        found.append(status(idle))

    first, second, last = found
    (failed,) = first.failed_lately
    assert (failed.reason, failed.worker) == ("the provider is away", "w1")
    assert (first.failing, first.given_up) == (1, 0)
    assert failed.attempts_left == RULES.attempts - 1
    assert failed.next_at is not None
    assert failed.next_at > idle.clock.now - timedelta(seconds=2 * REST)
    assert (last.failing, last.given_up, len(last.failed_lately)) == (1, 1, 3)
    assert [one.next_at is None for one in second.failed_lately] == [False, True]
    assert [one.next_at for one in last.failed_lately] == [None, None, None]

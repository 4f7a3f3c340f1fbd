"""Whoever asks is told how idle work stands, by any process, from the read models alone."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from resting import RULES, Idle, look, recorded, request_by_another, talk

from cutbank import get_idle_status
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_status import IdleStatus
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.domain.compaction_events import CompactionFailed, CompactionRequested
from cutbank.domain.policies.layered import Layered

REST = RULES.idle_time_s


def status(idle: Idle) -> IdleStatus:
    return get_idle_status(idle.store, RULES)


def test_what_is_due_waits_longest_first_and_what_rests_is_next(idle: Idle) -> None:
    talk(idle.store.session("one"))
    idle.pass_time(60)
    talk(idle.store.session("two"))
    idle.pass_time(REST - 60)
    resting = status(idle)
    idle.pass_time(90)

    said = status(idle)

    assert [due["session"] for due in resting.due_sessions] == ["one"]
    assert resting.next_due is not None
    assert resting.next_due > idle.clock.now - timedelta(seconds=90)
    assert [due["session"] for due in said.due_sessions] == ["one", "two"]
    assert said.due_sessions[0]["attempts_left"] == RULES.attempts


def test_a_session_of_records_only_is_not_due_and_records_let_no_other_wait(idle: Idle) -> None:
    idle.store.session("state").records.put("state", "words " * 9_000)
    talk(idle.session)
    idle.pass_time(REST - 1)
    idle.session.records.put("state", {"step": 1})
    idle.pass_time(1)

    due = status(idle).due_sessions

    assert [one["session"] for one in due] == [idle.session.key]


def test_whoever_is_at_a_session_is_named_until_the_lease_ends(idle: Idle) -> None:
    talk(idle.session)
    request_by_another(idle.session, "a worker")

    (running,) = status(idle).running
    idle.pass_time(601)

    assert (running["session"], running["worker"]) == (idle.session.key, "a worker")
    assert running["until"] - running["since"] == timedelta(seconds=600)
    assert status(idle).running == []


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
    assert [(done["session"], done["worker"]) for done in said.done_lately] == [
        ("prepared", "w1"),
        ("served", "w1"),
    ]
    (waiting,) = said.prepared_boundaries
    assert (waiting["session"], waiting["lineage"]) == ("prepared", "main")
    assert waiting["post_tokens"] < waiting["pre_tokens"]
    assert status(idle).done_in_day == 0
    assert status(idle).done == 2


@pytest.mark.parametrize(
    ("breaks", "worker_name", "requests"),
    [((Layered, "plan"), None, 0), ((SummaryChain, "write"), "w1", 3)],
)
def test_what_fails_is_tried_again_with_pauses_then_given_up_and_told_with_its_reasons(
    idle: Idle,
    monkeypatch: pytest.MonkeyPatch,
    breaks: tuple[type, str],
    worker_name: str | None,
    requests: int,
) -> None:
    monkeypatch.setattr(*breaks, lambda *_, **__: 1 / 0)
    talk(idle.session)
    worker = idle.worker(name="w1")
    idle.pass_time(REST)
    found = []
    for _ in range(100):
        look(worker)
        found.append(status(idle))
        idle.pass_time(10)

    said = idle.told.about(NoticeKind.FAILED)
    assert [notice.attempt for notice in said] == [1, 2, 3]
    assert [notice.next_at is None for notice in said] == [False, False, True]
    first, second = (b.at - a.at for a, b in pairwise(idle.told.about(NoticeKind.BEGAN)))
    pause = timedelta(seconds=RULES.backoff_s)
    assert [round((one.next_at - one.at) / pause) for one in said if one.next_at] == [1, 2]
    assert pause <= first < 2 * pause <= second < 3 * pause
    assert len(recorded(idle.session, CompactionFailed)) == 3
    assert len(recorded(idle.session, CompactionRequested)) == requests
    (failed,) = found[0].failed_lately
    assert (failed["reason"], failed["worker"]) == ("division by zero", worker_name)
    assert failed["attempts_left"] == RULES.attempts - 1
    assert failed["next_at"] is not None
    assert (found[0].failing, found[0].given_up) == (1, 0)
    assert (found[-1].failing, found[-1].given_up) == (1, 1)
    assert [one["next_at"] for one in found[-1].failed_lately] == [None, None, None]

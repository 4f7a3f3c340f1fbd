"""Workers that look at the same list of due sessions do not get in each other's way."""

from datetime import timedelta

import pytest
from resting import RULES, SetClock, Told, Working, pass_time, talk

from cutbank import SessionStore, StoredSession
from cutbank.adapters.runtime.idle import idle_worker as worker_module
from cutbank.adapters.runtime.idle.attempt import BUSY_PAUSE
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.idle_rules import IdleRules

ONE_AT_ONCE = IdleRules(idle_time_s=300, least_utilization=0.05, concurrency=1)


def taken_by_another(session: StoredSession) -> None:
    """Another worker's request, as if it had been faster."""
    events = session.log.events
    compaction = events.open_compaction(session.namespace, session.key, "main")
    compaction.request(
        trigger=Trigger.IDLE,
        policy="reserve-headroom",
        after=session.position,
        by="another worker",
        lease_s=600.0,
    )
    events.save(compaction)


def test_who_has_met_others_begins_somewhere_else_until_nothing_is_due(
    store: SessionStore,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in ("first", "second", "third"):
        talk(store.session(key))
        clock.now += timedelta(seconds=1)
    worker = working(ONE_AT_ONCE)
    pass_time(clock, RULES.idle_time_s)
    monkeypatch.setattr(worker_module, "shuffle", list.reverse)  # in place of the lot

    def faster(notice: WorkerNotice) -> None:
        if notice.about is NoticeKind.BEGAN and notice.session == "first":
            taken_by_another(store.session("first"))

    worker.listeners.append(faster)
    for _ in range(4):
        worker.look()
        assert worker.wait()
    assert told.keys(NoticeKind.PASSED_OVER) == ["first"]
    assert told.keys(NoticeKind.DONE) == ["third", "second"]
    pass_time(clock, BUSY_PAUSE.total_seconds())
    worker.look()  # nothing is due now

    for key in ("fifth", "sixth"):
        talk(store.session(key))
        clock.now += timedelta(seconds=1)
    pass_time(clock, RULES.idle_time_s)
    for _ in range(3):
        worker.look()
        assert worker.wait()
    assert told.keys(NoticeKind.DONE)[2:] == ["fifth", "sixth"]

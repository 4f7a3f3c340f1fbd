"""Workers that look at the same list of due sessions do not get in each other's way."""

from datetime import timedelta

import pytest
from resting import RULES, SetClock, Told, Working, pass_time, talk

from cutbank import SessionStore, StoredSession
from cutbank.adapters.runtime.idle import idle_worker as worker_module
from cutbank.adapters.runtime.idle.notices import About, Notice
from cutbank.domain.compaction_events import Trigger
from cutbank.domain.hooks import Happening
from cutbank.domain.idle_rules import IdleRules

ONE_AT_ONCE = IdleRules(idle_time_s=300, least_utilisation=0.05, concurrency=1)


def taken_by_another(session: StoredSession) -> None:
    """Another worker's request, as if it had been faster."""
    events = session.store.events
    compaction = events.opened_compaction(session.namespace, session.key, "main")
    compaction.request(
        trigger=Trigger.IDLE,
        policy="reserve-headroom",
        after=session.position,
        by="another worker",
        lease_s=600.0,
    )
    events.save(compaction)


def test_what_others_began_since_the_look_is_not_even_planned(
    session: StoredSession, store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, RULES.idle_time_s)
    planned = list[Happening]()
    store.listeners.append(planned.append)

    def faster(notice: Notice) -> None:
        if notice.about is About.BEGAN:
            taken_by_another(session)

    worker.heard.append(faster)
    worker.look()
    assert worker.wait()

    (passed_over,) = told.about(About.PASSED_OVER)
    assert str(passed_over.reason).startswith("another worker is compacting it, until")
    assert planned == []


def test_who_has_met_others_begins_somewhere_else_until_nothing_is_due(
    store: SessionStore,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in ("first", "second", "third", "fourth"):
        talk(store.session(key))
        clock.now += timedelta(seconds=1)
    worker = working(ONE_AT_ONCE)
    pass_time(clock, RULES.idle_time_s)
    monkeypatch.setattr(worker_module, "shuffle", list.reverse)  # in place of the lot

    def faster(notice: Notice) -> None:
        if notice.about is About.BEGAN and notice.session == "first":
            taken_by_another(store.session("first"))

    worker.heard.append(faster)
    for _ in range(5):
        worker.look()
        assert worker.wait()
    assert told.keys(About.PASSED_OVER) == ["first"]
    assert told.keys(About.DONE) == ["fourth", "third", "second"]

    for key in ("fifth", "sixth"):
        talk(store.session(key))
        clock.now += timedelta(seconds=1)
    pass_time(clock, RULES.idle_time_s)
    for _ in range(3):
        worker.look()
        assert worker.wait()
    assert told.keys(About.DONE)[3:] == ["fifth", "sixth"]

"""A worker compacts what rests, once, and leaves alone what does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta

import pytest
from resting import RULES, SetClock, Told, Working, pass_time, talk

from cutbank import Block, SessionStore, StoredSession, ToolCall, ToolResult
from cutbank.adapters.runtime.idle.attempt import Attempt
from cutbank.adapters.runtime.idle.maintenance_runner import Report
from cutbank.adapters.runtime.idle.notices import About
from cutbank.adapters.settings.maintenance_settings import ChoreSettings
from cutbank.domain.compaction_events import Trigger
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

    worker.look()
    assert worker.wait()
    assert told.keys(About.BEGAN) == []
    pass_time(clock, REST)
    worker.look()
    assert worker.wait()
    worker.look()

    (done,) = told.about(About.DONE)
    assert (done.session, done.pre_tokens) == (session.key, before)
    assert session.view().tokens == done.post_tokens
    assert session.view().tokens < before
    assert told.about(About.LOOKED)[-1].due == 0


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

    worker.look()
    assert worker.wait()
    assert told.keys(About.BEGAN) == []

    calling.append(ToolResult(tool_call_id="c1", content="made"))
    pass_time(clock, 7_200 + REST)
    worker.look()
    assert worker.wait()
    assert sorted(map(str, told.keys(About.DONE))) == ["calling", "sleeping"]


def test_a_wake_that_is_taken_back_keeps_nobody_waiting(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    session.schedule_wake(clock.now + timedelta(days=1), "the nightly build")
    session.schedule_wake(None)
    worker = working()
    pass_time(clock, REST)

    worker.look()

    assert worker.wait()
    assert told.keys(About.DONE) == [session.key]


def test_a_session_that_somebody_compacts_is_left_to_them_until_their_lease_ends(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, REST)
    store = session.store.events
    compaction = store.opened_compaction(session.namespace, session.key, "main")
    compaction.request(
        trigger=Trigger.IDLE,
        policy="reserve-headroom",
        after=session.position,
        by="another worker",
        lease_s=600.0,
    )
    store.save(compaction)

    worker.look()
    assert worker.wait()
    assert told.keys(About.BEGAN) == []

    pass_time(clock, 600)
    worker.look()
    assert worker.wait()
    (began,) = told.about(About.BEGAN)
    assert began.attempt == 2  # whoever was at it has died of it, for all that is known
    assert told.keys(About.DONE) == [session.key]


def test_a_session_in_which_something_is_said_meanwhile_is_looked_at_later(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, REST)
    session.store.read_models.catch_up()
    (found,) = worker.due.at(clock.now, 10)
    session.append(Block.user("one more thing"))

    worker._begin(found, clock.now)
    assert worker.wait()

    (passed,) = told.about(About.PASSED_OVER)
    assert passed.reason == "something was said meanwhile"
    worker.look()
    assert told.about(About.LOOKED)[-1].due == 0


def test_what_nothing_can_be_gained_of_is_looked_at_once(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    session.append(Block.user("word " * 20_000))
    worker = working()
    pass_time(clock, REST)

    for _ in range(3):
        worker.look()
        assert worker.wait()

    assert len(told.about(About.PASSED_OVER)) == 1
    assert session.view().boundary is None


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
    monkeypatch.setattr(session.store.events, "clock", lambda: now)  # which does not move
    worker.look()
    assert worker.wait()
    again = worker.look()
    assert worker.wait()

    assert len(told.about(About.BEGAN)) == len(told.about(About.PASSED_OVER)) == 1
    (away,) = told.about(About.DATABASE_AWAY)
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

    while not told.about(About.LOOKED) or told.about(About.LOOKED)[-1].due:
        worker.look()
        most = max(most, len(worker.running))
        assert worker.wait()

    assert most <= 2
    assert sorted(map(str, told.keys(About.DONE))) == [f"s{number}" for number in range(5)]


def test_only_the_namespaces_that_are_named_are_worked_in(
    store: SessionStore, working: Working, told: Told, clock: SetClock
) -> None:
    for namespace in ("ours", "theirs", "default"):
        talk(store.session("s", namespace=namespace))
    worker = working(replace(RULES, namespaces=("ours", "default")))
    pass_time(clock, REST)

    worker.look()

    assert worker.wait()
    assert {notice.namespace for notice in told.about(About.DONE)} == {"ours", "default"}


@dataclass
class Sweeping:
    """Upkeep with one chore, which sweeps until it is told that there is something better."""

    due: datetime | None
    swept: list[bool] = field(default_factory=list)
    """For each run, whether it could go on."""

    def next_at(self) -> datetime | None:
        return self.due

    def go_by(self, settings: ChoreSettings) -> None:
        raise AssertionError("nobody has changed the settings")

    def run_due(self, now: datetime, go_on: Callable[[], bool]) -> Sequence[Report]:
        self.swept.append(go_on())
        self.due = now + timedelta(days=1)
        return [Swept(next_at=self.due)]


@dataclass
class Swept:
    next_at: datetime
    chore: str = "sweep"
    reason: str | None = None
    took_s: float = 1.0
    has_failed: bool = False
    was_stopped: bool = False


def test_chores_are_done_where_no_session_is_due(
    session: StoredSession, working: Working, told: Told, clock: SetClock
) -> None:
    talk(session)
    worker = working()
    worker.upkeep = upkeep = Sweeping(due=clock.now)
    pass_time(clock, REST)

    worker.look()  # the session comes first
    assert worker.wait()
    assert (told.keys(About.DONE), upkeep.swept) == ([session.key], [])
    worker.look()
    assert worker.wait()
    worker.look()
    assert worker.wait()

    assert upkeep.swept == [True]
    (done,) = told.about(About.CHORE_DONE)
    assert (done.chore, done.next_at) == ("sweep", upkeep.due)


def test_chores_wait_for_the_end_of_quiet_hours(
    working: Working, told: Told, clock: SetClock
) -> None:
    quiet = QuietHours(time(0), time(6), UTC)
    worker = working(replace(RULES, quiet_hours=quiet))
    worker.upkeep = upkeep = Sweeping(due=clock.now)

    worker.look()
    assert worker.wait()
    assert upkeep.swept == []
    pass_time(clock, 6 * 3_600)
    worker.look()
    assert worker.wait()

    assert upkeep.swept == [True]


@pytest.mark.parametrize(("rest", "is_cold"), [(REST, False), (3_600 + REST, True)])
def test_a_cache_that_no_provider_keeps_so_long_is_not_reckoned_as_broken(
    session: StoredSession, working: Working, clock: SetClock, rest: float, is_cold: bool
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, rest)
    session.store.read_models.catch_up()
    (found,) = worker.due.at(clock.now, 10)

    order = Attempt(session.store, worker.due, found, worker.rules, worker.name).order()

    seen = session.compactor().planner.seen(order)
    assert order.cache_is_cold == is_cold
    assert seen.window.cached == (0 if is_cold else None)

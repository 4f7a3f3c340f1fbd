"""One job comes when its worker said, whatever clocks and looks do, and leaves no thread behind."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Event, Semaphore, Thread
from threading import enumerate as threads

import pytest
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, EVENT_JOB_MISSED
from clock import Clock
from resting import GUARD_S, RULES, SETTINGS, Told, pass_time, talk

import cutbank
from cutbank import CompactionEvent, IdleScheduler, InvalidSettingError, SessionStore
from cutbank.adapters.runtime.idle.idle_scheduler import JOB_NAME
from cutbank.adapters.runtime.idle.idle_worker import MAX_LOOK_INTERVAL
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice


class Looks:
    """Looks of a scheduler's worker that do nothing else than these tests say."""

    def __init__(self, scheduler: IdleScheduler) -> None:
        self.count = 0
        self.over = Semaphore(0)
        self.reached = 0
        self.does: Callable[[], datetime] = lambda: scheduler.worker.clock() + MAX_LOOK_INTERVAL
        scheduler.worker.look = self.look  # type: ignore[method-assign]
        scheduler._scheduler.add_listener(
            lambda _: self.over.release(), EVENT_JOB_EXECUTED | EVENT_JOB_ERROR
        )

    def look(self) -> datetime:
        self.count += 1
        return self.does()

    def reach(self, count: int) -> None:
        """Wait for so many looks."""
        for _ in range(self.reached, count):
            assert self.over.acquire(timeout=GUARD_S)
        self.reached = count


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threads())
    yield
    left = [thread for thread in threads() if thread not in before]
    for thread in left:
        thread.join(GUARD_S)
    assert not [thread for thread in left if thread.is_alive()]


@pytest.fixture
def scheduler(store: SessionStore, told: Told) -> Iterator[IdleScheduler]:
    scheduler = IdleScheduler(store, RULES, listeners=[told])
    yield scheduler
    scheduler.stop()


def test_many_wishes_at_once_are_one_look_or_two(scheduler: IdleScheduler) -> None:
    looks = Looks(scheduler)
    is_at_it, go_on = Event(), Event()
    plain = looks.does

    def held() -> datetime:
        is_at_it.set()
        assert go_on.wait(GUARD_S)
        return plain()

    looks.does = held
    scheduler.start()
    assert is_at_it.wait(GUARD_S)
    asking = [Thread(target=scheduler.look_now) for _ in range(20)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(GUARD_S)
    go_on.set()
    looks.reach(2)

    assert scheduler.stop()
    assert looks.count <= 3


def test_a_look_that_raises_is_followed_by_the_next(
    scheduler: IdleScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks(scheduler)
    plain = looks.does

    def raises() -> datetime:
        looks.does = plain
        raise RuntimeError("out of order")

    looks.does = raises
    scheduler.start()
    looks.reach(1)
    scheduler.look_now()
    looks.reach(2)

    job = scheduler._scheduler.get_job(JOB_NAME)
    assert job is not None
    assert job.next_run_time <= datetime.now(UTC) + MAX_LOOK_INTERVAL
    assert "out of order" in caplog.text


def test_a_process_that_slept_looks_once_and_not_for_each_look_that_it_missed(
    scheduler: IdleScheduler,
) -> None:
    looks = Looks(scheduler)
    scheduler.start()
    looks.reach(1)

    missed_looks: list[object] = []
    scheduler._scheduler.add_listener(missed_looks.append, EVENT_JOB_MISSED)
    # Long before any look that is due by the interval just now.
    missed = datetime.now(UTC) - timedelta(days=3, seconds=MAX_LOOK_INTERVAL.total_seconds() / 2)
    scheduler._scheduler.modify_job(JOB_NAME, next_run_time=missed)

    looks.reach(2)
    assert scheduler.stop()
    assert looks.count == 2
    assert missed_looks == []


def test_a_second_one_on_the_same_store_is_refused(store: SessionStore) -> None:
    first = cutbank.start_scheduler(store, RULES)
    with pytest.raises(InvalidSettingError, match="running already in this process"):
        cutbank.start_scheduler(store, RULES)

    first.stop()
    cutbank.start_scheduler(store, RULES)


def test_a_store_that_is_closed_ends_the_summary_that_runs(
    database: str, clock: Clock, told: Told
) -> None:
    is_asked, is_stopping = Event(), Event()

    def hold(happening: CompactionEvent) -> None:
        is_asked.set()
        assert is_stopping.wait(GUARD_S)

    def hear(notice: WorkerNotice) -> None:
        told(notice)
        if notice.about is NoticeKind.STOPPING:
            is_stopping.set()

    store = cutbank.open(database, clock=clock, settings=SETTINGS)
    talk(store.session("s"))
    pass_time(clock, RULES.idle_time_s)
    store.listeners.append(hold)
    scheduler = cutbank.start_scheduler(store, RULES, listeners=[hear])
    assert is_asked.wait(GUARD_S)

    store.close()

    assert not scheduler.is_running
    assert scheduler.worker.running_attempts == []
    assert told.notices[-1].about is NoticeKind.STOPPED
    with cutbank.open(database, clock=clock) as again:
        again.session("s", create=False).view()

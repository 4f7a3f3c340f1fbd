"""eventsourcing's own projections follow the log: each event once, in order, from any process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from databases import settings_of, subscriptions_of
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.persistence import Tracking
from eventsourcing.projection import Projection, ProjectionRunner
from eventsourcing.sqlite import SQLiteTrackingRecorder

import cutbank
from cutbank import Block, SessionStore
from cutbank.adapters.runtime.sessions.store_context import StoreContext
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.domain.event import Event
from cutbank.domain.session_events import BlockAppended

pytestmark = pytest.mark.usefixtures("no_thread_is_left")


class Everything(Projection[SQLiteTrackingRecorder]):
    """What happened, all of it; a runner begins where the last one has stopped."""

    def __init__(self, view: SQLiteTrackingRecorder) -> None:
        super().__init__(view)
        self.seen: list[tuple[int, Event]] = []

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        self.view.insert_tracking(tracking)
        self.seen.append((tracking.notification_id, domain_event))


Runner = ProjectionRunner[EventStore, SQLiteTrackingRecorder]


@contextmanager
def running(database: str, folder: Path) -> Iterator[Runner]:
    runner = Runner(
        application_class=EventStore,
        projection_class=Everything,
        view_class=SQLiteTrackingRecorder,
        env={
            **settings_of(database),
            "EVERYTHING_PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "EVERYTHING_SQLITE_DBNAME": str(folder / "everything.db"),
        },
    )
    try:
        with runner:
            yield runner
    finally:
        runner.view.datastore.close()


def check_seen(runner: Runner, begins: int = 1) -> int:
    """Wait until the projection has seen the log from there on; returns where that ends."""
    recorder = runner.app.recorder
    newest = recorder.max_notification_id() or 0
    runner.wait(newest, timeout=60)
    assert isinstance(runner.projection, Everything)
    assert runner.projection.seen == [
        (row.id, runner.app.mapper.to_domain_event(row))
        for row in recorder.select_notifications(begins, 100_000)
    ]
    return newest


def append_turns(store: SessionStore, times: int) -> None:
    """Single events, several of one session together, and bodies stored apart."""
    for number in range(times):
        session = store.session(f"session {number % 3}")
        session.append(Block.user("asks"))
        session.append(Block.assistant("answers"), Block.note("and notes"))
        session.append(Block.developer("returns " * 800))


def test_another_store_s_events_are_seen_while_it_goes_on(database: str, tmp_path: Path) -> None:
    """It wakes no subscription of this one, as another process does not."""
    with running(database, tmp_path) as runner, cutbank.open(database) as another:
        mine = SessionStore(StoreContext(runner.app, "log"))

        for number in range(3):
            another.session("theirs").append(Block.user(f"theirs {number}"))
            check_seen(runner)
            mine.session("mine").append(Block.user(f"mine {number}"))

        check_seen(runner)


def test_what_stopped_goes_on_where_it_was(database: str, tmp_path: Path) -> None:
    with cutbank.open(database) as store:
        append_turns(store, 30)  # more than one page of what is pulled
    with running(database, tmp_path) as runner:
        before = check_seen(runner)
    assert before > 100
    with cutbank.open(database) as store:
        append_turns(store, 3)

    with running(database, tmp_path) as runner:
        append_turns(SessionStore(StoreContext(runner.app, "log")), 3)

        check_seen(runner, before + 1)


def test_a_store_closed_under_a_subscription_ends_it(database: str) -> None:
    store = EventStore(settings_of(database))
    SessionStore(StoreContext(store, "log")).session("session").append(Block.user("words"))

    with store.recorder.subscribe() as subscription:
        topics = [next(subscription).topic for _ in range(3)]
        store.close()

        with pytest.raises(Exception, match="closed"):
            next(subscription)

    assert topics == ["cutbank:SessionOpened", "cutbank:TurnStarted", "cutbank:BlockAppended"]


def test_several_subscriptions_are_each_served(database: str) -> None:
    with EventStore(settings_of(database)) as store:
        session = SessionStore(StoreContext(store, "log")).session("session")
        with (
            store.recorder.subscribe() as everything,
            store.recorder.subscribe(gt=1) as later,
            store.recorder.subscribe(topics=[BlockAppended.TOPIC]) as blocks,
        ):
            session.append(Block.user("words"))

            assert [next(everything).id for _ in range(3)] == [1, 2, 3]
            assert [next(later).id for _ in range(2)] == [2, 3]
            assert next(blocks).id == 3
        assert subscriptions_of(store) == []


def test_the_process_s_environment_does_not_reach_the_store(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may configure another application of eventsourcing in the same process."""
    for name, value in (
        ("PERSISTENCE_MODULE", "eventsourcing.popo"),
        ("DATABASE", ":memory:"),
        ("COMPRESSOR_TOPIC", "eventsourcing.compressor:ZlibCompressor"),
        ("MAPPER_TOPIC", "eventsourcing.persistence:Mapper"),
    ):
        monkeypatch.setenv(name, value)

    for blocks in (1, 2):
        with cutbank.open(database) as store:
            store.session("session").append(Block.user("words"))
            assert len(store.session("session").view().entries) == blocks

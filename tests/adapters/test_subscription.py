"""eventsourcing's own projections follow the log: each event once, in order, from any process."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Signal
from typing import Any

import pytest
from databases import settings_of, subscriptions_of
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.persistence import Tracking
from eventsourcing.projection import Projection, ProjectionRunner
from eventsourcing.sqlite import SQLiteTrackingRecorder

import cutbank
from cutbank import Block, SessionStore, ToolCall, ToolResult
from cutbank.adapters.storage.event_log.event_store import EventStore
from cutbank.adapters.storage.event_log.recorder import Recorder
from cutbank.domain.event import Event
from cutbank.domain.session_events import BlockAppended, ToolCalled, ToolReturned

Seen = tuple[int, str, int, str]
"""Notification id, stream, version, topic."""


class Sightings(SQLiteTrackingRecorder):
    """A read model of one row for each time that an event was seen."""

    def construct_create_table_statements(self) -> list[str]:
        return [
            *super().construct_create_table_statements(),
            """CREATE TABLE IF NOT EXISTS sightings (
                seen INTEGER PRIMARY KEY AUTOINCREMENT,
                id INTEGER, stream TEXT, version INTEGER, topic TEXT, text TEXT
            )""",
        ]

    def add(self, event: Event, tracking: Tracking) -> None:
        block = getattr(event, "block", None)
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_tracking(cursor, tracking)
            cursor.execute(
                "INSERT INTO sightings (id, stream, version, topic, text) VALUES (?, ?, ?, ?, ?)",
                (
                    tracking.notification_id,
                    event.originator_id.hex,
                    event.originator_version,
                    event.TOPIC,
                    block.text if block else None,
                ),
            )

    def seen(self) -> list[Seen]:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute("SELECT id, stream, version, topic FROM sightings ORDER BY seen")
            return [tuple(row) for row in cursor.fetchall()]

    def texts(self) -> list[str]:
        with self.datastore.transaction(commit=False) as cursor:
            cursor.execute("SELECT text FROM sightings WHERE text IS NOT NULL ORDER BY seen")
            return [row[0] for row in cursor.fetchall()]


class Everything(Projection[Sightings]):
    """What happened, all of it."""

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        self.view.add(domain_event, tracking)


class Blocks(Everything):
    """Only what stands for blocks."""

    topics = (BlockAppended.TOPIC, ToolCalled.TOPIC, ToolReturned.TOPIC)


class Halting(Everything):
    """Says that it is in the middle of what was pulled, and waits."""

    reached: SimpleQueue[int] = SimpleQueue()
    go_on = Signal()

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        self.view.add(domain_event, tracking)
        if tracking.notification_id % 100 == 0:
            self.reached.put(tracking.notification_id)
            self.go_on.wait(60)


class Fragile(Everything):
    """A projection with an error in it."""

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        if isinstance(domain_event, ToolCalled):
            raise ZeroDivisionError("the projection's own error")
        self.view.add(domain_event, tracking)


Runner = ProjectionRunner[EventStore, Sightings]


@contextmanager
def running(
    database: str, folder: Path, projection: type[Everything] = Everything
) -> Iterator[Runner]:
    name = projection.__name__.upper()
    runner = Runner(
        application_class=EventStore,
        projection_class=projection,
        view_class=Sightings,
        env={
            **settings_of(database),
            f"{name}_PERSISTENCE_MODULE": "eventsourcing.sqlite",
            f"{name}_SQLITE_DBNAME": str(folder / f"{name}.db"),
        },
    )
    try:
        with runner:
            yield runner
    finally:
        runner.view.datastore.close()


def logged(recorder: Recorder) -> list[Seen]:
    """What the log holds, in order."""
    return [
        (row.id, row.originator_id.hex, row.originator_version, row.topic)  # type: ignore[union-attr]
        for row in recorder.select_notifications(1, 100_000)
    ]


def append_turns(store: SessionStore, times: int, name: str = "") -> None:
    """Single events, several of one session together, and bodies stored apart."""
    for number in range(times):
        session = store.session(f"session {number % 3}")
        call = f"{name}{number}"
        session.append(Block.user(f"{call} asks"))
        session.append(
            Block.assistant(f"{call} answers"),
            ToolCall(tool_call_id=call, name="tool", arguments=f"{call} calls"),
        )
        session.append(ToolResult(tool_call_id=call, content=f"{call} returns " * 800))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def test_a_projection_sees_every_event_once_and_in_order(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as runner:
        store = SessionStore(runner.app, "log")

        append_turns(store, 15)

        newest = runner.app.recorder.max_notification_id()
        runner.wait(newest, timeout=60)
        assert runner.view.seen() == logged(runner.app.recorder)
        assert len(runner.view.seen()) == newest > 60


def test_what_was_there_before_is_seen_as_well(database: str, tmp_path: Path) -> None:
    with cutbank.open(database) as store:
        append_turns(store, 130)  # more than one page of what is pulled

    with running(database, tmp_path) as runner:
        runner.wait(runner.app.recorder.max_notification_id(), timeout=60)

        assert runner.view.seen() == logged(runner.app.recorder)
        assert len(runner.view.seen()) > 500


CHILD = """
import sys
import cutbank
from cutbank import Block
path, name, times = sys.argv[1:]
with cutbank.open(path) as store:
    session = store.session("of another process")
    for number in range(int(times)):
        session.append(Block.user(f"{name} {number}"))
        print(number, flush=True)
        sys.stdin.readline()
"""


@contextmanager
def another_process(database: str, name: str, times: int) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, database, name, str(times)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_another_process_s_events_are_seen_while_it_goes_on(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as runner, another_process(database, "child", 10) as child:
        assert child.stdin
        assert child.stdout
        store = SessionStore(runner.app, "log")
        expected = []

        for number in range(10):
            # The child has appended, waits, and does nothing that could wake anybody.
            assert child.stdout.readline() == f"{number}\n"
            expected.append(f"child {number}")
            runner.wait(runner.app.recorder.max_notification_id(), timeout=60)
            assert runner.view.texts() == expected
            # And this process's own stand between them.
            store.session("mine").append(Block.user(f"mine {number}"))
            expected.append(f"mine {number}")
            child.stdin.write("go on\n")
            child.stdin.flush()

        runner.wait(runner.app.recorder.max_notification_id(), timeout=60)
        assert runner.view.texts() == expected
        assert runner.view.seen() == logged(runner.app.recorder)


def test_only_the_topics_asked_for_are_seen(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, Blocks) as runner:
        append_turns(SessionStore(runner.app, "log"), 5)

        newest = runner.app.recorder.max_notification_id()
        runner.wait(newest, timeout=60)

        seen = runner.view.seen()
        assert len(seen) == 20
        assert seen == [row for row in logged(runner.app.recorder) if row[3] in Blocks.topics]


def test_what_stopped_goes_on_where_it_was(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path) as runner:
        append_turns(SessionStore(runner.app, "log"), 3)
        runner.wait(runner.app.recorder.max_notification_id(), timeout=60)
        before = runner.view.seen()

    with cutbank.open(database) as store:
        append_turns(store, 3, name="unseen ")

    with running(database, tmp_path) as runner:
        append_turns(SessionStore(runner.app, "log"), 3, name="seen at once ")
        runner.wait(runner.app.recorder.max_notification_id(), timeout=60)

        assert runner.view.seen()[: len(before)] == before
        assert runner.view.seen() == logged(runner.app.recorder)


def test_what_was_stopped_in_the_middle_misses_nothing(database: str, tmp_path: Path) -> None:
    with cutbank.open(database) as store:
        append_turns(store, 60)

    for _ in range(2):
        Halting.go_on.clear()
        while not Halting.reached.empty():
            Halting.reached.get()
        with running(database, tmp_path, Halting) as runner:
            assert Halting.reached.get(timeout=60) % 100 == 0
            runner.stop()
            Halting.go_on.set()

    with running(database, tmp_path, Halting) as runner:
        newest = runner.app.recorder.max_notification_id()
        runner.wait(newest, timeout=60)
        assert runner.view.seen() == logged(runner.app.recorder)
        assert len(runner.view.seen()) == newest > 200


def test_a_projection_s_own_error_reaches_whoever_waits(database: str, tmp_path: Path) -> None:
    with running(database, tmp_path, Fragile) as runner:
        append_turns(SessionStore(runner.app, "log"), 1)

        with pytest.raises(ZeroDivisionError, match="the projection's own error"):
            runner.wait(runner.app.recorder.max_notification_id(), timeout=60)

        assert [topic for _, _, _, topic in runner.view.seen()] == [
            "cutbank:SessionOpened",
            "cutbank:TurnStarted",
            "cutbank:BlockAppended",
            "cutbank:BlockAppended",
        ]


def test_a_store_closed_under_a_subscription_ends_it(database: str) -> None:
    store = EventStore(settings_of(database))
    SessionStore(store, "log").session("session").append(Block.user("words"))

    with store.recorder.subscribe() as subscription:
        topics = [next(subscription).topic for _ in range(3)]
        store.close()

        with pytest.raises(Exception, match="closed"):
            next(subscription)

    assert topics == ["cutbank:SessionOpened", "cutbank:TurnStarted", "cutbank:BlockAppended"]


def test_several_subscriptions_are_each_served(database: str) -> None:
    with EventStore(settings_of(database)) as store:
        session = SessionStore(store, "log").session("session")
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
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may configure another application of eventsourcing in the same process."""
    monkeypatch.setenv("PERSISTENCE_MODULE", "eventsourcing.popo")
    monkeypatch.setenv("SQLITE_DBNAME", str(tmp_path / "another.db"))
    monkeypatch.setenv("POSTGRES_DBNAME", "another")
    monkeypatch.setenv("COMPRESSOR_TOPIC", "eventsourcing.compressor:ZlibCompressor")
    monkeypatch.setenv("MAPPER_TOPIC", "eventsourcing.persistence:Mapper")

    with running(database, tmp_path) as runner:
        append_turns(SessionStore(runner.app, "log"), 1)
        runner.wait(runner.app.recorder.max_notification_id(), timeout=60)

        assert runner.view.seen() == logged(runner.app.recorder)

    assert not (tmp_path / "another.db").exists()
    with cutbank.open(database) as store:
        assert [session.key for session in store.sessions()] == ["session 0"]

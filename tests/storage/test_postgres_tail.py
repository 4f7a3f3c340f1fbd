"""Who follows the log on PostgreSQL misses nothing, however appends overlap and are undone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from databases import asked, connected_to
from processes import Processes
from victims import APPEND_RAW

import cutbank
from cutbank import SessionStore
from cutbank.adapters.storage.event_log.recorder import Recorder
from cutbank.domain.session import derive_session_id


@pytest.fixture
def engine() -> str:
    return "postgres"


@pytest.fixture
def recorder(store: SessionStore) -> Recorder:
    """A log that holds one session's opening, #1."""
    store.session("a session")
    return store.events.recorder


class Writer:
    """A transaction that is held open for as long as the test wants."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.end("BEGIN")

    def append(self) -> None:
        self.end(APPEND_RAW)

    def number(self) -> int:
        """The transaction's number, which it has from now on."""
        found = self.connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
        assert found
        return int(found[0])

    def end(self, how: str) -> None:
        self.connection.execute(how.encode())


@pytest.fixture
def writers(database: str) -> Iterator[Any]:
    with ExitStack() as closing:

        def begun() -> Writer:
            return Writer(closing.enter_context(connected_to(database)))

        yield begun


def seen(recorder: Recorder) -> list[int]:
    return [row.id for row in recorder.select_notifications(1, 100)]


def test_a_transaction_of_a_higher_number_may_hold_a_lower_id(
    recorder: Recorder, writers: Any
) -> None:
    """A snapshot knows no running transaction that began after the newest one that ended."""
    first, second = writers(), writers()
    assert first.number() < second.number()
    second.append()
    first.append()
    first.end("COMMIT")

    before = [seen(recorder) for _ in range(3)]
    second.end("COMMIT")

    assert before == [[1], [1], [1]]
    assert seen(recorder) == [1, 2, 3]


@pytest.mark.parametrize(
    ("end", "there"), [("COMMIT", [1, 2, 3, 5, 6]), ("ROLLBACK", [1, 3, 5, 6])]
)
def test_what_may_still_appear_is_waited_for(
    recorder: Recorder, writers: Any, end: str, there: list[int]
) -> None:
    held = [writers() for _ in range(5)]
    for writer in held:
        writer.append()  # 2 to 6
    for writer, how in zip(held[1:], ["COMMIT", "ROLLBACK", "COMMIT", "COMMIT"], strict=True):
        writer.end(how)

    before = seen(recorder), recorder.max_notification_id()
    held[0].end(end)

    assert before == ([1], 1)
    assert seen(recorder) == there
    assert recorder.max_notification_id() == 6


def test_another_program_s_long_transaction_delays_nobody(
    recorder: Recorder, writers: Any, database: str
) -> None:
    other, undone = writers(), writers()
    other.connection.execute("CREATE TEMPORARY TABLE songs (name text)")
    other.number()
    undone.append()
    undone.end("ROLLBACK")
    with connected_to(database) as connection:
        connection.execute(APPEND_RAW)

    assert seen(recorder) == [1, 3]


@pytest.mark.parametrize("times", [150, pytest.param(6_000, marks=pytest.mark.slow)])
def test_four_processes_write_and_a_reader_misses_nothing(
    database: str, run: Processes, times: int
) -> None:
    got: list[int] = []
    end = derive_session_id("default", "the end")
    with cutbank.open(database) as store, ThreadPoolExecutor(1) as reading:
        store.session("shared")
        with store.events.recorder.subscribe() as subscription:

            def read() -> None:
                for notification in subscription:
                    got.append(notification.id)
                    if notification.originator_id == end:
                        return

            done = reading.submit(read)
            run.run_together(4, "overlaps", database, "NUMBER", times)
            store.session("the end")
            done.result(timeout=60)
        there = asked(store, "SELECT notification_id FROM stored_events ORDER BY notification_id")

    assert got == [id for (id,) in there]
    assert len(got) > 3 * times
    assert got[-1] > len(got), "no append was undone: nothing was proved"

"""A database that is closed by one thread while others use it neither crashes nor loses rows."""

import sqlite3
import threading
from pathlib import Path

import pytest

from cutbank.adapters.storage.databases.sqlite_datastore import SQLiteLogDatastore


def test_a_close_waits_for_what_another_thread_is_reading(tmp_path: Path) -> None:
    datastore = SQLiteLogDatastore(str(tmp_path / "a.db"))
    is_reading, may_go_on = threading.Event(), threading.Event()
    rows: list[tuple[int]] = []

    def stay_in_query() -> int:
        is_reading.set()
        assert may_go_on.wait(30)
        return 7

    def read() -> None:
        datastore.reader.create_function("stay", 0, stay_in_query)
        rows.extend(datastore.read("SELECT stay()"))

    reading = threading.Thread(target=read)
    closing = threading.Thread(target=datastore.close)
    reading.start()
    assert is_reading.wait(30)
    closing.start()
    closing.join(0.2)  # long enough for a close that does not wait
    was_waiting = closing.is_alive()
    may_go_on.set()
    reading.join(30)
    closing.join(30)

    assert was_waiting
    assert rows == [(7,)]
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        datastore.read("SELECT 1")


def test_an_ending_thread_leaves_its_connection_to_a_close_that_has_found_it(
    tmp_path: Path,
) -> None:
    datastore = SQLiteLogDatastore(str(tmp_path / "a.db"))
    datastore.read("SELECT 1")
    (reader,) = datastore._readers

    with reader.lock:  # as a close holds it
        ending = threading.Thread(target=reader.__del__)
        ending.start()
        ending.join(30)

        assert reader.connection.execute("SELECT 7").fetchone() == (7,)

"""At rest a database is one file; a copy of it that was made in use is told from it."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from faulty import closing, one_line, texts
from files_at_rest import files, header_says, said, write
from processes import Processes
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.sqlite import sqlite_datastore, wal_mode

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here")


# Beginning and ending


def test_a_database_is_at_rest_before_and_after_it_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    with cutbank.open(path) as store:
        assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
        store.session("session").append(Block.user("words"))
        assert files(tmp_path) == ["log.db", "log.db-shm", "log.db-wal"]
    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
    assert said(path) == ["words"]


def test_who_only_reads_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)
    before = path.read_bytes()

    with cutbank.open(path) as store:
        session = store.session("session", create=False)
        assert session.view().entries[0].text == "words"
        assert files(tmp_path) == ["log.db"]
        assert "writer" not in vars(sqlite_recorder(store).datastore)

    assert path.read_bytes() == before


def test_it_is_in_use_until_the_last_one_leaves(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)
    one, two, reader = (cutbank.open(path) for _ in range(3))
    one.session("session").append(Block.user("of one"))
    two.session("session").append(Block.user("of two"))
    assert len(texts(reader.session("session"))) == 3

    for store in (one, two):
        store.close()
        assert "log.db-wal" in files(tmp_path)
    reader.close()  # it never wrote, and is the last

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
    assert said(path) == ["words", "of one", "of two"]


def test_a_store_that_nobody_closes_is_at_rest_when_its_program_ends(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.db"
    code = f"""
import cutbank
store = cutbank.open({str(path)!r})
store.session("session").append(cutbank.Block.user("words"))
"""

    run_python(code)

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
    assert said(path) == ["words"]


def run_python(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_writer_waits_for_who_reads_a_file_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as one, cutbank.open(path) as other:
        reader = sqlite_recorder(one).datastore.reader
        reading = reader.execute("SELECT notification_id FROM stored_events")
        reading.fetchone()  # and is not done
        monkeypatch.setattr(sqlite_datastore, "LOCK_TIMEOUT_SECONDS", 0.01)

        with one_line("log.db is locked by another program"):
            other.session("session").append(Block.user("more"))
        reading.close()
        other.session("session").append(Block.user("more"))

        assert texts(one.session("session")) == ["words", "more"]
    assert header_says(path) == "at rest"


def test_whoever_leaves_while_a_writer_begins_does_not_end_its_use(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)
    with closing(path) as writer, closing(path) as leaver:
        left: list[str] = []

        def leave(statement: str) -> None:
            # The writer has begun and not read yet: the other finds itself alone.
            if "schema_version" in statement and not left:
                left.extend(leaver.execute("PRAGMA journal_mode = DELETE").fetchone())

        writer.set_trace_callback(leave)

        wal_mode.enable_wal(writer, patience=60)

        assert left == ["delete"]
        assert wal_mode.has_wal_mode(writer)
        assert header_says(path) == "in use"
        leaver.execute("PRAGMA busy_timeout = 0")
        assert leaver.execute("SELECT count(*) FROM home").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            leaver.execute("PRAGMA journal_mode = DELETE")


def test_a_long_read_lets_others_begin_to_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as one, cutbank.open(path) as other:
        sqlite_recorder(one).datastore.enter_wal_mode()
        reading = sqlite_recorder(one).datastore.reader.execute("SELECT * FROM stored_events")
        reading.fetchone()

        other.session("session").append(Block.user("more"))

        reading.close()
    assert said(path) == ["words", "more"]


def test_of_two_that_leave_at_once_the_second_is_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If both tried before one has gone, each would find the other there."""
    path = tmp_path / "log.db"
    stores = [cutbank.open(path) for _ in range(2)]
    for store in stores:
        store.session("session").append(Block.user("words"))
    writer, readers = (
        sqlite_recorder(stores[0]).datastore.writer,
        sqlite_recorder(stores[0]).datastore._readers,
    )
    for reader in readers:
        reader.connection.close()
    is_there = threading.Event()

    def flock(descriptor: int, operation: int) -> None:
        is_there.set()
        fcntl.flock(descriptor, operation)

    with ThreadPoolExecutor(1) as threads:
        with wal_mode.leave_wal(writer, path):
            monkeypatch.setattr(
                wal_mode, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX)
            )
            closing_too = threads.submit(stores[1].close)
            assert is_there.wait(60)
            assert "log.db-wal" in files(tmp_path)
            assert not closing_too.done()
            writer.close()
        closing_too.result(60)

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
    stores[0].close()


@pytest.mark.parametrize(("times", "crowd"), [(3, 8), pytest.param(40, 20, marks=pytest.mark.slow)])
def test_processes_that_come_and_go_together_leave_one_file(
    tmp_path: Path, run: Processes, times: int, crowd: int
) -> None:
    path = tmp_path / "log.db"

    for number in range(times):
        ended = run.run_together(crowd if number else 3, "joins", path, "NUMBER")
        assert len(ended.told("ack")) == len(ended.codes)
        assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])

    with cutbank.open(path) as store:
        assert sorted(texts(store.session("joined"))) == sorted(
            f"{n} was here" for n in range(crowd)
        )
        assert verify(store).is_ok


def test_readers_that_come_and_go_beside_a_writer_see_all_of_it(
    tmp_path: Path, run: Processes
) -> None:
    path = tmp_path / "log.db"
    write(path)

    for number in range(3):
        with cutbank.open(path) as store, ThreadPoolExecutor(1) as threads:
            looking = threads.submit(run.run_together, 4, "looks", path, 5)
            while not looking.done():
                store.session("session").append(Block.user(f"{number}"))
            assert len(looking.result().told("saw")) == 20

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])


# After a crash


def test_what_a_killed_process_left_in_the_log_is_there_and_put_to_rest_by_who_reads(
    tmp_path: Path, run: Processes
) -> None:
    """It goes with the file where that is copied or moved."""
    path = tmp_path / "before" / "log.db"
    path.parent.mkdir()
    ended = run.left_alone("leaves_a_log", path, 5)
    assert ended.was_killed
    assert path.with_name("log.db-wal").stat().st_size > 0

    shutil.copytree(path.parent, tmp_path / "copy")
    path.parent.rename(tmp_path / "moved")

    for folder in (tmp_path / "moved", tmp_path / "copy"):
        assert said(folder / "log.db") == [f"words {number}" for number in range(5)]
        assert (header_says(folder / "log.db"), files(folder)) == ("at rest", ["log.db"])

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
from cutbank import Block, verify
from cutbank.adapters.storage.databases import sqlite_datastore, wal_mode

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log" / "log.db"


def check_at_rest(path: Path) -> None:
    assert (header_says(path), files(path.parent)) == ("at rest", ["log.db"])


# Beginning and ending


def test_who_only_reads_changes_nothing(path: Path) -> None:
    write(path)
    before = path.read_bytes()

    with cutbank.open(path) as store:
        assert texts(store.session("session", create=False)) == ["words"]
        assert files(path.parent) == ["log.db"]
        assert "writer" not in vars(sqlite_recorder(store).datastore)

    assert path.read_bytes() == before


def test_it_is_in_use_until_the_last_one_leaves(path: Path) -> None:
    one, two, reader = (cutbank.open(path) for _ in range(3))
    check_at_rest(path)
    one.session("session").append(Block.user("of one"))
    assert files(path.parent) == ["log.db", "log.db-shm", "log.db-wal"]
    two.session("session").append(Block.user("of two"))
    assert texts(reader.session("session")) == ["of one", "of two"]

    for store in (one, two):
        store.close()
        assert "log.db-wal" in files(path.parent)
    reader.close()  # it never wrote, and is the last

    check_at_rest(path)
    assert said(path) == ["of one", "of two"]


def test_a_store_that_nobody_closes_is_at_rest_when_its_program_ends(path: Path) -> None:
    code = f"""
import cutbank
store = cutbank.open({str(path)!r})
store.session("session").append(cutbank.Block.user("words"))
"""

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    check_at_rest(path)
    assert said(path) == ["words"]


def test_a_writer_waits_for_who_reads_a_file_at_rest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

        reading = reader.execute("SELECT notification_id FROM stored_events")
        reading.fetchone()  # a reader lets others write
        other.session("session").append(Block.user("and more"))
        reading.close()
        assert texts(one.session("session")) == ["words", "more", "and more"]
    check_at_rest(path)


def test_whoever_leaves_while_a_writer_begins_does_not_end_its_use(path: Path) -> None:
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


def test_of_two_that_leave_at_once_the_second_is_the_last(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If both tried before one has gone, each would find the other there."""
    stores = [cutbank.open(path) for _ in range(2)]
    for store in stores:
        store.session("session").append(Block.user("words"))
    datastore = sqlite_recorder(stores[0]).datastore
    for reader in datastore._readers:
        reader.connection.close()
    is_there = threading.Event()

    def flock(descriptor: int, operation: int) -> None:
        is_there.set()
        fcntl.flock(descriptor, operation)

    with ThreadPoolExecutor(1) as threads:
        with wal_mode.leave_wal(datastore.writer, path):
            stub = SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX)
            monkeypatch.setattr(wal_mode, "fcntl", stub)
            closing_too = threads.submit(stores[1].close)
            assert is_there.wait(60)
            assert "log.db-wal" in files(path.parent)
            assert not closing_too.done()
            datastore.writer.close()
        closing_too.result(60)

    check_at_rest(path)
    stores[0].close()


@pytest.mark.parametrize(("times", "crowd"), [(3, 8), pytest.param(40, 20, marks=pytest.mark.slow)])
def test_processes_that_come_and_go_together_leave_one_file(
    path: Path, run: Processes, times: int, crowd: int
) -> None:
    for number in range(times):
        ended = run.run_together(crowd if number else 3, "joins", path, "NUMBER")
        assert len(ended.told("ack")) == len(ended.codes)
        check_at_rest(path)

    with cutbank.open(path) as store:
        assert sorted(texts(store.session("joined"))) == sorted(
            f"{n} was here" for n in range(crowd)
        )
        assert verify(store).is_ok


# After a crash


def test_what_a_killed_process_left_in_the_log_is_there_and_put_to_rest_by_who_reads(
    path: Path, run: Processes
) -> None:
    """It goes with the file where that is copied or moved."""
    assert run.left_alone("leaves_a_log", path, 5).was_killed
    assert path.with_name("log.db-wal").stat().st_size > 0

    copied = path.parent.with_name("copied") / path.name
    shutil.copytree(path.parent, copied.parent)
    moved = path.parent.rename(path.parent.with_name("moved")) / path.name

    for file in (moved, copied):
        assert said(file) == [f"words {number}" for number in range(5)]
        check_at_rest(file)

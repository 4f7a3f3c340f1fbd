"""At rest a database is one file; a copy of it that was made in use is told from it."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from faulty import closing, one_line, texts
from processes import Processes, processes
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.storage.sqlite import wal_mode
from cutbank.adapters.storage.sqlite.copy_adoption import adopt
from cutbank.domain.errors import StorageError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here")


@pytest.fixture(scope="module")
def run() -> Iterator[Processes]:
    with processes() as run:
        yield run


def write(path: Path, *words: str) -> None:
    with cutbank.open(path) as store:
        session = store.session("session")
        for word in words or ("words",):
            session.append(Block.user(word))


def said(path: Path) -> list[str]:
    with cutbank.open(path) as store:
        return texts(store.session("session", create=False))


def header_says(path: Path) -> str:
    return {1: "at rest", 2: "in use"}[path.read_bytes()[18]]


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


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
        monkeypatch.setattr(datastore, "LOCK_TIMEOUT", 0.01)

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

        wal_mode.begin_use(writer, patience=60)

        assert left == ["delete"]
        assert wal_mode.is_in_use(writer)
        assert header_says(path) == "in use"
        leaver.execute("PRAGMA busy_timeout = 0")
        assert leaver.execute("SELECT count(*) FROM home").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            leaver.execute("PRAGMA journal_mode = DELETE")


def test_a_long_read_lets_others_begin_to_write(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as one, cutbank.open(path) as other:
        sqlite_recorder(one).datastore.let_others_write()
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
        with wal_mode.leaving(writer, path):
            monkeypatch.setattr(
                journal, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX)
            )
            closing_too = threads.submit(stores[1].close)
            assert is_there.wait(60)
            assert "log.db-wal" in files(tmp_path)
            assert not closing_too.done()
            writer.close()
        closing_too.result(60)

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])
    stores[0].close()


@pytest.mark.parametrize("times", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_processes_that_come_and_go_together_leave_one_file(
    tmp_path: Path, run: Processes, times: int
) -> None:
    path = tmp_path / "log.db"

    for number in range(times):
        ended = run.run_together(20 if number else 3, "joins", path, "NUMBER")
        assert len(ended.told("ack")) == len(ended.codes)
        assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])

    with cutbank.open(path) as store:
        assert sorted(texts(store.session("joined"))) == sorted(f"{n} was here" for n in range(20))
        assert verify(store).ok


def test_readers_that_come_and_go_beside_a_writer_see_all_of_it(
    tmp_path: Path, run: Processes
) -> None:
    path = tmp_path / "log.db"
    write(path)

    for number in range(10):
        with cutbank.open(path) as store, ThreadPoolExecutor(1) as threads:
            looking = threads.submit(run.run_together, 4, "looks", path, 5)
            while not looking.done():
                store.session("session").append(Block.user(f"{number}"))
            assert len(looking.result().told("saw")) == 20

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])


def test_a_database_in_memory_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with cutbank.open(":memory:") as store:
        store.session("session").append(Block.user("words"))

    assert files(tmp_path) == []


# After a crash


def test_what_a_killed_process_left_in_the_log_is_there_and_put_to_rest_by_who_reads(
    tmp_path: Path, run: Processes
) -> None:
    path = tmp_path / "log.db"
    ended = run.left_alone("leaves_a_log", path, 5)
    assert ended.was_killed
    assert (tmp_path / "log.db-wal").stat().st_size > 0

    assert said(path) == [f"words {number}" for number in range(5)]

    assert (header_says(path), files(tmp_path)) == ("at rest", ["log.db"])


def test_a_database_is_moved_with_its_log(tmp_path: Path, run: Processes) -> None:
    (tmp_path / "before").mkdir()
    run.left_alone("leaves_a_log", tmp_path / "before" / "log.db", 5)

    (tmp_path / "before").rename(tmp_path / "after")

    assert len(said(tmp_path / "after" / "log.db")) == 5


def test_a_database_is_copied_with_its_log_after_a_crash(tmp_path: Path, run: Processes) -> None:
    (tmp_path / "before").mkdir()
    run.left_alone("leaves_a_log", tmp_path / "before" / "log.db", 5)

    shutil.copytree(tmp_path / "before", tmp_path / "after")

    assert len(said(tmp_path / "after" / "log.db")) == 5
    assert files(tmp_path / "after") == ["log.db"]


# Copies


def test_a_copy_of_a_database_at_rest_is_a_database(tmp_path: Path) -> None:
    write(tmp_path / "log.db")

    shutil.copy(tmp_path / "log.db", tmp_path / "copy.db")

    for number in range(2):
        write(tmp_path / "copy.db", f"{number}")
    assert said(tmp_path / "copy.db") == ["words", "0", "1"]
    assert said(tmp_path / "log.db") == ["words"]


def copy_in_use(tmp_path: Path) -> Path:
    copy = tmp_path / "copy.db"
    with cutbank.open(tmp_path / "log.db") as store:
        session = store.session("session")
        session.append(Block.user("in the file"))
        sqlite_recorder(store).datastore.writer.execute("PRAGMA wal_checkpoint")
        session.append(Block.user("in the log"))
        shutil.copy(tmp_path / "log.db", copy)
    assert header_says(copy) == "in use"
    return copy


def test_a_copy_made_in_use_without_the_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    copy = copy_in_use(tmp_path)
    before = copy.read_bytes()

    for _ in range(2):
        with one_line("copy.db is a copy made while the database was in use", "`cutbank backup`"):
            cutbank.open(copy)

    assert copy.read_bytes() == before
    assert files(tmp_path) == ["copy.db", "log.db"]
    assert said(tmp_path / "log.db") == ["in the file", "in the log"]


def test_a_copy_made_in_use_can_be_accepted_as_far_as_it_goes(tmp_path: Path) -> None:
    copy = copy_in_use(tmp_path)

    adopt(str(copy))

    assert said(copy) == ["in the file"]
    write(copy, "and on")
    assert said(copy) == ["in the file", "and on"]


def test_a_copy_that_replaces_its_original_is_refused(tmp_path: Path) -> None:
    copy = copy_in_use(tmp_path)

    copy.replace(tmp_path / "log.db")

    with one_line("log.db is a copy made while the database was in use"):
        cutbank.open(tmp_path / "log.db")


def test_another_program_may_be_the_last_to_close_it(tmp_path: Path, run: Processes) -> None:
    path = tmp_path / "log.db"
    run.left_alone("leaves_a_log", path, 3)
    run.run("sqlite_shell", path)
    assert (header_says(path), files(tmp_path)) == ("in use", ["log.db"])

    path.rename(tmp_path / "moved.db")  # it is the same file still

    assert len(said(tmp_path / "moved.db")) == 3
    assert header_says(tmp_path / "moved.db") == "at rest"


def test_a_link_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "log.db")

    write(tmp_path / "link.db")

    assert said(tmp_path / "real" / "log.db") == ["words"]
    assert files(tmp_path / "real") == ["log.db"]
    assert said(tmp_path / "link.db") == ["words"]


def test_a_copy_of_two_times_is_found_damaged_and_left_as_it_is(tmp_path: Path) -> None:
    path, torn = tmp_path / "log.db", tmp_path / "torn.db"
    write(path, *(f"{number} " * 300 for number in range(60)))
    earlier = path.read_bytes()
    write(path, *(f"{number} later " * 300 for number in range(60)))
    later = path.read_bytes()
    page = int.from_bytes(later[16:18], "big")
    lines: list[str] = []
    cuts = range(page, len(earlier), page * 3)
    copies = [earlier[:cut] + later[cut:] for cut in cuts]
    copies += [later[:cut] + earlier[cut:] for cut in cuts]
    for content in copies:
        torn.unlink(missing_ok=True)
        torn.write_bytes(content)
        try:
            store = cutbank.open(torn)
        except StorageError as error:
            lines += str(error).splitlines()
            continue
        with store:  # the pages were of one time after all
            assert verify(store).ok
            assert len(texts(store.session("session"))) in {60, 120}

    assert len(lines) > len(cuts)
    assert all("torn.db is damaged" in line for line in lines)


def test_a_backup_needs_no_second_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log.db")
    with cutbank.open(tmp_path / "log.db") as store:
        store.backup(tmp_path / "copy.db")
    looks: list[Path] = []
    monkeypatch.setattr(
        "cutbank.adapters.storage.sqlite.file_identity.refuse_damaged", lambda _, p: looks.append(p)
    )

    assert said(tmp_path / "copy.db") == ["words"]
    assert looks == []
    shutil.copy(tmp_path / "copy.db", tmp_path / "another.db")
    for _ in range(2):
        assert said(tmp_path / "another.db") == ["words"]
    assert looks == [tmp_path / "another.db"]


def test_a_log_of_another_database_is_refused_and_both_are_left_as_they_are(
    tmp_path: Path, run: Processes
) -> None:
    """SQLite would write the other's pages into this one."""
    write(tmp_path / "log.db", "mine")
    run.left_alone("leaves_a_log", tmp_path / "other.db", 5)
    (tmp_path / "other.db-wal").rename(tmp_path / "log.db-wal")
    (tmp_path / "other.db-shm").unlink()
    before = {name: (tmp_path / name).read_bytes() for name in ("log.db", "log.db-wal")}

    with one_line("log.db-wal is not of", "move it away"):
        cutbank.open(tmp_path / "log.db")
    with one_line("log.db-wal is not of", "move it away"):
        adopt(str(tmp_path / "log.db"))

    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    (tmp_path / "log.db-wal").rename(tmp_path / "away")
    assert said(tmp_path / "log.db") == ["mine"]


def test_looking_at_the_header_keeps_the_locks_of_this_process(
    tmp_path: Path, run: Processes
) -> None:
    """A file that is opened and closed beside SQLite would lose all locks on it."""
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("more"))
        wal_mode.refuse_foreign_log(path.resolve())

        run.run("joins", path, 1)  # it comes and goes, and is not the last

        assert "log.db-wal" in files(tmp_path)
        store.session("session").append(Block.user("and more"))
    assert said(path) == ["words", "more", "and more"]


def test_an_older_format_at_rest_is_put_to_rest_when_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    golden = Path(__file__).parent / "golden" / "v1.sql"
    with closing(path) as connection:
        connection.executescript(golden.read_text(encoding="utf-8"))
        connection.execute("PRAGMA journal_mode = WAL")
    assert header_says(path) == "in use"

    cutbank.open(path).close()

    assert (header_says(path), files(tmp_path)) == ("at rest", ["old.db"])
    with closing(path) as connection:
        (inode,) = connection.execute("SELECT inode FROM home").fetchone()
    assert inode == str(path.stat().st_ino)


def test_a_file_opened_for_reading_only_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    write(path)

    with cutbank.open(f"file:{path}?mode=ro") as store:
        session = store.session("session", create=False)
        assert texts(session) == ["words"]
        with one_line("is read-only"):
            session.append(Block.user("more"))

    assert said(path) == ["words"]

"""A plain copy of a database is told from it, and is right or refused, whoever writes."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, product
from pathlib import Path

import pytest
from faulty import one_line, texts
from files_at_rest import files, header_says, said, write
from processes import Processes
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import Block, StorageError, verify
from cutbank.adapters.storage.databases import wal_mode
from cutbank.adapters.storage.databases.sqlite_recorder import adopt_copy

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of processes are POSIX's")

WRITERS = 4
REFUSALS = (
    "is a copy made while the database was in use",
    "is damaged",
    "which was closed cleanly",
)
"""The last one: the file was copied between two writers, and the log after the second began."""


def check(store: cutbank.SessionStore) -> int:
    """Every session is what its writer said up to some moment; returns how much that is."""
    assert verify(store).violations == []
    said = [texts(session) for session in store.sessions()]
    for one in said:
        assert len(one) % 2 == 0
        assert [text.split()[0] for text in one] == [f"{at // 2}" for at in range(len(one))]
    return sum(map(len, said))


@pytest.mark.parametrize("times", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_a_plain_copy_of_what_four_processes_write_is_right_or_refused(
    tmp_path: Path, run: Processes, times: int
) -> None:
    path = tmp_path / "log.db"
    run.run("writes", path, 9, 1)
    refused = []

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(run.run_together, WRITERS, "writes", path, "NUMBER", times)
        for number in count():
            copy = tmp_path / f"{number}" / "log.db"
            copy.parent.mkdir()
            shutil.copy(path, copy)
            if number % 2:
                # As somebody does who knows of the log, and not that both must be of one moment.
                with suppress(FileNotFoundError):  # they may all have left meanwhile
                    shutil.copy(path.with_name("log.db-wal"), copy.parent)
            try:
                with cutbank.open(copy) as store:
                    check(store)
            except StorageError as refusal:
                refused.append(str(refusal))
            shutil.rmtree(copy.parent)
            if writing.done():
                break
        writing.result()

    # How many are refused depends on the machine; that some are is the next test's.
    assert all(any(words in line for words in REFUSALS) for line in refused), refused
    assert all("\n" not in line for line in refused)
    with cutbank.open(path) as store:
        assert check(store) == (WRITERS * times + 1) * 2


def test_a_copy_made_in_use_without_the_log_is_refused_until_it_is_accepted(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "log.db", tmp_path / "copy.db"
    with cutbank.open(path) as store:
        session = store.session("session")
        session.append(Block.user("in the file"))
        sqlite_recorder(store).datastore.writer.execute("PRAGMA wal_checkpoint")
        session.append(Block.user("in the log"))
        shutil.copy(path, copy)
    assert header_says(copy) == "in use"
    before = copy.read_bytes()

    for _ in range(2):
        with one_line("copy.db is a copy made while the database was in use", "`cutbank backup`"):
            cutbank.open(copy)

    assert copy.read_bytes() == before
    assert files(tmp_path) == ["copy.db", "log.db"]
    assert said(path) == ["in the file", "in the log"]
    copy.replace(path)
    with one_line("log.db is a copy made while the database was in use"):
        cutbank.open(path)

    adopt_copy(str(path))

    write(path, "and on")
    assert said(path) == ["in the file", "and on"]


def test_another_program_may_be_the_last_to_close_it(tmp_path: Path, run: Processes) -> None:
    path = tmp_path / "log.db"
    run.left_alone("leaves_a_log", path, 3)
    run.run("sqlite_shell", path)
    assert (header_says(path), files(tmp_path)) == ("in use", ["log.db"])

    path.rename(tmp_path / "moved.db")  # it is the same file still

    assert len(said(tmp_path / "moved.db")) == 3
    assert header_says(tmp_path / "moved.db") == "at rest"


def test_a_backup_needs_no_second_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "log.db")
    with cutbank.open(tmp_path / "log.db") as store:
        store.backup(tmp_path / "copy.db")
    looks: list[Path] = []
    monkeypatch.setattr(
        "cutbank.adapters.storage.databases.database_file.refuse_damaged",
        lambda _, p: looks.append(p),
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
    path, log = tmp_path / "log.db", tmp_path / "log.db-wal"
    write(path, "mine")
    run.left_alone("leaves_a_log", tmp_path / "other.db", 5)
    (tmp_path / "other.db-wal").rename(log)
    (tmp_path / "other.db-shm").unlink()
    before = [file.read_bytes() for file in (path, log)]

    for use in (cutbank.open, adopt_copy):
        with one_line("log.db-wal is not of", "move it away"):
            use(str(path))

    assert [file.read_bytes() for file in (path, log)] == before
    log.rename(tmp_path / "away")
    assert said(path) == ["mine"]


def test_looking_at_the_header_keeps_the_locks_of_this_process(
    tmp_path: Path, run: Processes
) -> None:
    """A file that is opened and closed beside SQLite would lose all locks on it."""
    path = tmp_path / "log.db"
    write(path)
    with cutbank.open(path) as store:
        store.session("session").append(Block.user("more"))
        wal_mode.refuse_foreign_wal(path.resolve())

        run.run("joins", path, 1)  # it comes and goes, and is not the last

        assert "log.db-wal" in files(tmp_path)
        store.session("session").append(Block.user("and more"))
    assert said(path) == ["words", "more", "and more"]


def test_a_copy_of_two_times_is_found_damaged(tmp_path: Path) -> None:
    path, torn = tmp_path / "log.db", tmp_path / "torn.db"
    write(path, *(f"{number} " * 300 for number in range(60)))
    earlier = path.read_bytes()
    write(path, *(f"{number} later " * 300 for number in range(60)))
    later = path.read_bytes()
    page = int.from_bytes(later[16:18], "big")
    cuts = range(page, len(earlier), page * 3)
    lines: list[str] = []
    for cut, (head, tail) in product(cuts, [(earlier, later), (later, earlier)]):
        torn.unlink(missing_ok=True)
        torn.write_bytes(head[:cut] + tail[cut:])
        try:
            store = cutbank.open(torn)
        except StorageError as error:
            lines.append(str(error))
            continue
        with store:  # the pages were of one time after all
            assert verify(store).is_ok
            assert len(texts(store.session("session"))) in {60, 120}
    assert len(lines) > len(cuts)
    assert all("torn.db is damaged" in line for line in lines)

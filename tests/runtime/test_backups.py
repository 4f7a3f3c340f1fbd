"""Backups are whole before they have their name, and nothing goes but what is superfluous."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import victims
from clock import StillClock
from databases import each_database
from faulty import texts
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_steps import ANY
from processes import processes

import cutbank
from cutbank import Block, MaintenanceSettings, SessionStore, run_maintenance, verify
from cutbank.adapters.runtime.maintenance import UNFINISHED, Backups, ChoreStatus, list_superfluous

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server's read models go must not be the home of who runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith("lock"))


def text_of(number: int) -> str:
    return f"{number} is what was said. " * 700


def tell(store: SessionStore, first: int, last: int) -> None:
    for number in range(first, last):
        store.session("a session").append(Block.user(text_of(number)))


@contextmanager
def opened_copy(backup: Path) -> Iterator[SessionStore]:
    """Open a backup elsewhere, so that nothing is added beside it."""
    copy = Path(shutil.copy(backup, backup.parent.parent / "copy.db"))
    with cutbank.open(copy) as store:
        yield store
    copy.unlink()


@dataclass
class Site:
    """A store with backups, and its clock."""

    store: SessionStore
    clock: StillClock
    folder: Path

    def make(self, every: float = 24.0, keep: int = 7) -> Backups:
        known = MaintenanceSettings(
            backup_folder=str(self.folder), backup_every=every, backup_keep=keep
        )
        return Backups(self.store, known)

    def tell(self, first: int, last: int) -> None:
        tell(self.store, first, last)


@pytest.fixture
def site(store: SessionStore, clock: StillClock, folder: Path) -> Site:
    return Site(store, clock, folder)


def run(backups: Backups, now: datetime) -> ChoreStatus:
    made = backups.run_due(now)
    assert made is not None
    return made


# When, and by whom


@each_database
def test_a_backup_is_made_when_it_is_due_and_all_processes_know(
    site: Site, database: str, engine: str
) -> None:
    backups = site.make(every=1.0)
    assert (backups.find_next_time(), backups.run_due(START), backups.read_status()) == (
        *(None, None),
        [],
    )  # the log is empty
    site.tell(0, 1)
    assert [(one.last_run, one.next_at) for one in backups.read_status()] == [(None, None)]
    due_at = START + timedelta(hours=1)

    made = run(backups, START)

    (name,) = files(site.folder)
    assert name.startswith({"sqlite": "test-", "postgres": "postgres-"}[engine])
    assert name.endswith("-20260101T000000Z.db")
    assert (made.chore, made.outcome, made.last_run, made.next_at) == (
        *("backup", "done"),
        *(START, due_at),
    )
    assert made.reason == f"{name}, {(site.folder / name).stat().st_size:,} bytes"
    assert backups.run_due(site.clock.advance(minutes=59)) is None
    with cutbank.open(database, clock=site.clock) as other:
        others = Site(other, site.clock, site.folder).make(every=1.0)
        assert others.find_next_time() == backups.find_next_time() == due_at
        (status,) = others.read_status()
        assert (status.outcome, status.last_run, status.next_at) == ("done", START, due_at)
        site.clock.advance(minutes=1)
        assert run(others, site.clock.now).outcome == "done"
    assert backups.run_due(site.clock.now) is None


def test_nothing_is_made_without_a_folder_or_a_file(site: Site) -> None:
    site.tell(0, 1)
    assert run_maintenance(site.store) == []
    with cutbank.open(":memory:", clock=site.clock) as store:
        tell(store, 0, 1)
        backups = Site(store, site.clock, site.folder).make()
        assert backups.find_next_time() is None
        assert (backups.read_status(), backups.run_due(site.clock.now)) == ([], None)


def test_what_another_process_is_at_is_left_to_it(site: Site) -> None:
    site.tell(0, 1)
    backups = site.make()
    run(backups, site.clock.now)
    (lock,) = (file for file in site.folder.iterdir() if file.name.endswith("lock"))
    now = site.clock.advance(days=1)
    other = sqlite3.connect(lock, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    assert backups.run_due(now) is None

    assert backups.find_next_time() == now + timedelta(minutes=1)
    other.close()
    assert run(backups, site.clock.advance(minutes=1)).outcome == "done"


def test_a_clock_that_was_wrong_neither_doubles_the_work_nor_ends_it(site: Site) -> None:
    backups = site.make()
    site.tell(0, 1)
    run(backups, site.clock.advance(hours=1))
    assert backups.run_due(site.clock.advance(hours=-1)) is None  # elsewhere it is an hour earlier
    assert backups.run_due(site.clock.advance(hours=24)) is None
    run(backups, site.clock.advance(hours=1))

    run(backups, site.clock.advance(days=365))
    site.clock.advance(days=-360)
    run(backups, site.clock.now)
    assert backups.run_due(site.clock.advance(hours=23)) is None


def test_a_failure_is_one_line_and_is_tried_again_ever_later(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tell(0, 1)
    site.folder.rmdir()
    backups = site.make()

    def broken(*_: object) -> None:
        raise MemoryError("of\nall things")

    with monkeypatch.context() as patch:
        patch.setattr(Backups, "_run", broken)
        failed = run(backups, site.clock.now)
    assert (failed.outcome, failed.reason) == ("failed", r"MemoryError('of\nall things')")

    for minutes in (15, 30, 60, 120, 240, 360, 360):
        before = site.clock.advance(minutes=minutes) - timedelta(seconds=1)
        assert backups.run_due(before) is None
        failed = run(backups, site.clock.now)
        assert failed.reason == (
            f"no backup can be kept in {site.folder}: No such file or directory; "
            "check the folder, or set maintenance.backup_folder"
        )
    assert [one.failures for one in backups.read_status()] == [8]
    site.folder.mkdir()
    assert run(backups, site.clock.advance(hours=6)).outcome == "done"
    assert [one.failures for one in backups.read_status()] == [0]


# What is kept


def test_the_newest_backups_are_kept_and_each_opens(site: Site) -> None:
    backups = site.make(every=6.0, keep=3)
    site.clock.advance(hours=6)

    for number in range(5):
        site.tell(number, number + 1)
        run(backups, site.clock.now)
        assert len(files(site.folder)) == min(number + 1, 3)
        site.clock.advance(hours=6)

    assert [file.rpartition("-")[2] for file in files(site.folder)] == [
        "20260101T180000Z.db",
        "20260102T000000Z.db",
        "20260102T060000Z.db",
    ]
    for number, file in enumerate(files(site.folder), 3):
        with opened_copy(site.folder / file) as copy:
            assert texts(copy.session("a session", create=False)) == [
                text_of(one) for one in range(number)
            ]
            assert verify(copy).violations == []


def test_two_logs_may_share_a_folder(tmp_path: Path, clock: StillClock, folder: Path) -> None:
    """Even if their files have one name, and one is a copy of the other."""
    paths = [tmp_path / name / "log.db" for name in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
    with cutbank.open(paths[0], clock=clock) as store:
        tell(store, 0, 1)
    shutil.copy(*paths)

    for _ in range(4):
        for path in paths:
            with cutbank.open(path, clock=clock) as store:
                run(Site(store, clock, folder).make(keep=2), clock.now)
        clock.advance(days=1)

    marks = [name.split("-")[1] for name in files(folder)]
    assert sorted(marks.count(mark) for mark in set(marks)) == [2, 2]


# What is never touched

PREFIX = "log-0123abcd-"
MOMENTS = st.datetimes(datetime(1980, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001 - in UTC
    lambda moment: f"{PREFIX}{moment:%Y%m%dT%H%M%SZ}.db"
)


@settings(max_examples=20)
@given(st.sets(MOMENTS, max_size=12), MOMENTS, st.sets(st.text(max_size=30)), st.integers(1, 9))
def test_only_older_backups_of_this_log_go_and_never_the_one_just_made(
    others: set[str], newest: str, foreign: set[str], keep: int
) -> None:
    own = others | {newest}
    near = {f"{name}{end}" for name in own for end in (".bak", UNFINISHED, " (copy)", "-wal", "\n")}
    near |= {name.replace("0123abcd", "0123abce") for name in own} | {f" {name}" for name in own}
    near |= {name.replace(".db", ".DB") for name in own} | {f"other-{name}" for name in own}
    foreign = (foreign | near) - own

    gone = list_superfluous(own | foreign, PREFIX, newest, keep)

    assert set(gone) <= others - {newest}
    left = own - set(gone)
    assert len(left) == min(len(own), keep)
    assert max(gone, default="") <= min(left - {newest}, default="~")


def test_what_others_keep_in_the_folder_stays_and_what_was_left_unfinished_goes(
    site: Site, folder: Path
) -> None:
    site.tell(0, 1)
    backups = site.make(every=1.0, keep=1)
    run(backups, site.clock.now)
    (first,) = files(folder)
    old = first.replace("2026", "2019")
    for name in ("notes.txt", f"{first}.bak", f"{first} (copy).db", f"my {old}{UNFINISHED}"):
        (folder / name).write_text("mine")
    (folder / old).mkdir()
    (folder / first.replace("2026", "2018")).symlink_to(folder / "notes.txt")
    mine = set(files(folder)) - {first}
    for end in ("", "-wal", "-shm", "-journal"):
        (folder / f"{first}{UNFINISHED}{end}").write_bytes(b"half of it")

    run(backups, site.clock.advance(hours=1))

    assert first not in files(folder)
    assert set(files(folder)) > mine
    assert len(files(folder)) == len(mine) + 1


def test_a_backup_that_is_not_whole_never_gets_its_name(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tell(0, 30)
    backups = site.make(every=1.0, keep=1)
    run(backups, site.clock.now)
    (before,) = files(folder)
    site.tell(30, 31)
    whole = site.store.backup

    def damaged(target: str | Path) -> None:
        whole(target)
        with Path(target).open("r+b") as file:
            file.seek(4_096)
            file.write(b"\0" * 8_192)

    def outdated(target: str | Path) -> None:
        shutil.copy(folder / before, target)

    def full(target: str | Path) -> None:
        Path(target).write_bytes(b"half of it")
        raise sqlite3.OperationalError("database or disk is full")

    for fails, words in (
        (damaged, ""),
        (outdated, "is not whole (it ends at"),
        (full, "the disk is full"),
    ):
        monkeypatch.setattr(site.store, "backup", fails)
        report = run(backups, site.clock.advance(hours=1))
        assert report.outcome == "failed"
        assert words in str(report.reason)
        assert "\n" not in str(report.reason)
        assert files(folder) == [before]

    monkeypatch.setattr(site.store, "backup", whole)
    assert run(backups, site.clock.advance(hours=1)).outcome == "done"
    (after,) = files(folder)
    assert after != before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")
@each_database
@pytest.mark.slow
def test_a_kill_at_any_step_leaves_every_backup_whole(database: str, folder: Path) -> None:
    """And the next process makes the one that is due, and removes what was left."""
    kept = 2
    with cutbank.open(database) as store:
        for number in range(3):
            victims.append_turn(store.session("session"), number)
        said = texts(store.session("session"))

    def check_whole() -> int:
        found = list(folder.glob("*Z.db"))
        for file in found:
            with opened_copy(file) as copy:
                assert texts(copy.session("session", create=False)) == said
        return len(found)

    with processes() as run:
        for _ in range(kept):
            run.run("backs_up", database, folder)
        ended = run.killed_at(ANY, 0, "counted", "backup", database, 0, "", folder)
        assert ended.codes == [0], ended
        steps = int(ended.told("steps")[0][0])
        kills = []
        for step in sorted({1 + number * (steps - 1) // 9 for number in range(10)}):
            ended = run.killed_at(ANY, step, "steps", "backup", database, 0, "", folder)
            assert ended.was_killed or ended.codes == [0], ended
            kills.append(ended.was_killed)
            assert check_whole() >= kept
            run.run("backs_up", database, folder)
            assert check_whole() == kept
            assert list(folder.glob(f"*{UNFINISHED}*")) == []

    assert all(kills[:-1])  # at the very end, the last step of all may be another one
    assert len(kills) >= 5

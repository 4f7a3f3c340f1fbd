"""Backups are whole before they have their name, and nothing goes but what is superfluous."""

import shutil
import sqlite3
from datetime import datetime
from pathlib import Path

import pytest
from clock import StillClock
from faulty import texts
from hypothesis import given, settings
from hypothesis import strategies as st

import cutbank
from cutbank import MaintenanceSettings, verify
from cutbank.adapters.runtime.maintenance.backups import UNFINISHED, list_superfluous
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome

from .conftest import Site, of, outcomes, tell, text_of

DONE, FAILED = TaskOutcome.DONE, TaskOutcome.FAILED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "backups"
    folder.mkdir()
    return folder


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_newest_backups_are_kept_and_each_opens(site: Site, folder: Path) -> None:
    chores = site.make(backup_folder=str(folder), backup_every=6.0, backup_keep=3)

    assert of("backup", chores.run_due(site.clock.now)).reason == "the log is empty"
    assert files(folder) == []
    site.clock.advance(hours=6)
    for number in range(5):
        site.tell(number, number + 1)
        assert of("backup", chores.run_due(site.clock.now)).outcome is DONE
        assert len(files(folder)) == min(number + 1, 3)
        assert "backup" not in outcomes(chores.run_due(site.clock.advance(hours=5, minutes=59)))
        site.clock.advance(minutes=1)

    assert [file.rpartition("-")[2] for file in files(folder)] == [
        "20260101T180000Z.db",
        "20260102T000000Z.db",
        "20260102T060000Z.db",
    ]
    for number, file in enumerate(files(folder), 3):
        # Opened elsewhere, so that nothing is added here.
        shutil.copy(folder / file, folder.parent / "copy.db")
        with cutbank.open(folder.parent / "copy.db", clock=site.clock) as copy:
            assert texts(copy.session("a session", create=False)) == [
                text_of(one) for one in range(number)
            ]
            assert verify(copy).violations == []
        (folder.parent / "copy.db").unlink()


def test_two_logs_may_share_a_folder(tmp_path: Path, clock: StillClock, folder: Path) -> None:
    """Even if their files have one name, and one is a copy of the other."""
    paths = [tmp_path / name / "log.db" for name in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
    with cutbank.open(paths[0], clock=clock) as store:
        tell(store, 0, 1)
    shutil.copy(*paths)
    known = MaintenanceSettings(backup_folder=str(folder), backup_keep=2)

    for _ in range(4):
        for path in paths:
            with cutbank.open(path, clock=clock) as store:
                chores = Maintenance(store, known)
                assert of("backup", chores.run_due(clock.now)).outcome is DONE
        clock.advance(days=1)

    marks = [name.split("-")[1] for name in files(folder)]
    assert sorted(marks.count(mark) for mark in set(marks)) == [2, 2]


def test_no_backup_takes_the_place_of_another(site: Site, folder: Path) -> None:
    site.tell(0, 1)
    chores = site.make(backup_folder=str(folder))
    chores.run_due(site.clock.now)
    (first,) = folder.iterdir()
    before = first.read_bytes()
    site.storage.save_record("backup", "{}")

    chores.run_due(site.clock.now)

    assert len(files(folder)) == 2
    assert first.read_bytes() == before


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
    chores = site.make(backup_folder=str(folder), backup_every=1.0, backup_keep=1)
    chores.run_due(site.clock.now)
    (first,) = files(folder)
    old = first.replace("2026", "2019")
    for name in ("notes.txt", f"{first}.bak", f"{first} (copy).db", f"my {old}{UNFINISHED}"):
        (folder / name).write_text("mine")
    (folder / old).mkdir()
    (folder / first.replace("2026", "2018")).symlink_to(folder / "notes.txt")
    mine = set(files(folder)) - {first}
    for end in ("", "-wal", "-shm", "-journal"):
        (folder / f"{first}{UNFINISHED}{end}").write_bytes(b"half of it")

    chores.run_due(site.clock.advance(hours=1))

    assert first not in files(folder)
    assert set(files(folder)) > mine
    assert len(files(folder)) == len(mine) + 1


def test_a_backup_that_is_not_whole_never_gets_its_name(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tell(0, 30)
    chores = site.make(backup_folder=str(folder), backup_every=1.0, backup_keep=1)
    chores.run_due(site.clock.now)
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
        report = of("backup", chores.run_due(site.clock.advance(hours=1)))
        assert report.outcome is FAILED
        assert words in str(report.reason)
        assert "\n" not in str(report.reason)
        assert files(folder) == [before]

    monkeypatch.setattr(site.store, "backup", whole)
    assert of("backup", chores.run_due(site.clock.advance(hours=1))).outcome is DONE
    (after,) = files(folder)
    assert after != before

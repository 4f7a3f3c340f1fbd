"""What is done when and by whom, and what becomes of what fails."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import StillClock
from databases import each_database
from sqlite_behind import sqlite_recorder

import cutbank
from cutbank import MaintenanceSettings, verify
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import (
    TaskOutcome,
    TaskRecord,
)
from cutbank.adapters.runtime.maintenance.recompression import Recompression

from .conftest import START, Site, of, outcomes, tell

DONE, STOPPED, FAILED = TaskOutcome.DONE, TaskOutcome.STOPPED, TaskOutcome.FAILED
ALL = {"bodies", "backup"}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    folder = tmp_path / "backups"
    folder.mkdir()
    return str(folder)


def is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def test_each_chore_is_done_when_it_is_due(site: Site, folder: str) -> None:
    site.say()
    site.clock.advance(minutes=1)
    chores = site.make(every=24.0, backup_every=1.0, backup_folder=folder)
    assert is_past(chores.find_next_time(), site.clock.now)

    assert outcomes(chores.run_due(site.clock.now)) == dict.fromkeys(ALL, DONE)

    assert chores.find_next_time() == site.clock.now + timedelta(hours=1)
    assert chores.run_due(site.clock.advance(minutes=59)) == []
    assert outcomes(chores.run_due(site.clock.advance(minutes=1))) == {"backup": DONE}
    assert outcomes(chores.run_due(site.clock.advance(hours=23))) == dict.fromkeys(ALL, DONE)


def test_what_was_done_and_what_it_saved_is_known_to_every_process(
    site: Site, database: str
) -> None:
    site.tell(0, 3)
    made = site.make()
    assert {(status.last_run, status.next_at) for status in made.read_status()} == {(None, None)}
    (report, *_) = made.run_due(site.clock.advance(days=8))
    site.clock.advance(hours=2)

    (status, *_) = made.read_status()
    assert (status.chore, status.outcome, status.failures) == ("bodies", DONE, 0)
    assert status.last_run == START + timedelta(days=8)
    assert status.next_at == report.next_at == START + timedelta(days=9)
    assert status.saved == status.saved_in_all == report.saved > 0
    with cutbank.open(database, clock=site.clock) as other:
        others = Maintenance(other, MaintenanceSettings())
        assert others.find_next_time() == made.find_next_time()
        assert others.read_status() == made.read_status()


def test_nothing_is_done_where_chores_are_turned_off_or_nothing_is_kept(site: Site) -> None:
    assert site.make(enabled=False).find_next_time() is None
    assert site.make(enabled=False).run_due(site.clock.now) == []
    with cutbank.open(":memory:", clock=site.clock) as store:
        chores = Maintenance(store, MaintenanceSettings())
        assert chores.find_next_time() is None
        assert (chores.read_status(), chores.run_due(site.clock.now)) == ([], [])


def test_looking_whether_something_is_due_changes_nothing(
    tmp_path: Path, clock: StillClock
) -> None:
    path = tmp_path / "log.db"
    with cutbank.open(path, clock=clock) as store:
        tell(store, 0, 3)
    before = path.read_bytes()

    with cutbank.open(path, clock=clock) as store:
        chores = Maintenance(store, MaintenanceSettings())
        assert is_past(chores.find_next_time(), clock.now)
        assert chores.read_status()

        assert [file.name for file in tmp_path.iterdir()] == ["log.db"]
    assert path.read_bytes() == before


def test_a_record_that_is_lost_means_only_that_it_is_done_again(site: Site) -> None:
    site.tell(0, 3)
    site.make().run_due(site.clock.advance(days=8))
    record = TaskRecord(began_at=START, outcome=DONE, position=7)
    for text in ("", "{}", "[]", "no json", '{"began_at": 7}', '{"outcome": "x"}'):
        site.storage.save_record("bodies", text)

        reports = site.make().run_due(site.clock.now)

        assert (text, outcomes(reports)) == (text, {"bodies": DONE})
        assert reports[0].saved == 0
    later = record.to_json().replace("{", '{"of a later version": 7, ', 1)
    assert TaskRecord.parse(later) == record


def test_a_clock_that_was_wrong_neither_doubles_the_work_nor_ends_it(site: Site) -> None:
    chores = site.make()
    site.tell(0, 1)
    chores.run_due(site.clock.advance(hours=1))
    assert chores.run_due(site.clock.advance(hours=-1)) == []  # elsewhere it is an hour earlier
    assert chores.run_due(site.clock.advance(hours=24)) == []
    assert set(outcomes(chores.run_due(site.clock.advance(hours=1)))) == {"bodies"}

    chores.run_due(site.clock.advance(days=365))
    site.clock.advance(days=-360)  # what was done in a time to come is done again
    assert is_past(chores.find_next_time(), site.clock.now)
    assert DONE in outcomes(chores.run_due(site.clock.now)).values()


def test_a_run_ends_when_there_is_something_better_to_do(site: Site) -> None:
    site.tell(0, 30)
    site.clock.advance(days=8)
    chores = site.make()

    assert chores.run_due(site.clock.now, lambda: False) == []
    answers = iter([True] * 6 + [False] * 99)
    (report,) = chores.run_due(site.clock.now, lambda: next(answers))

    assert (report.chore, report.outcome) == ("bodies", STOPPED)
    assert report.next_at == site.clock.now + timedelta(minutes=1)
    assert chores.run_due(site.clock.now + timedelta(seconds=59)) == []
    (report, *_) = chores.run_due(site.clock.advance(minutes=1))
    assert (report.chore, report.outcome) == ("bodies", DONE)
    assert max(site.sizes()) < 1_000


@each_database
def test_what_somebody_else_is_at_is_left_to_them(site: Site, database: str) -> None:
    site.tell(0, 3)
    chores = site.make(cold_after=0.0)
    with (
        cutbank.open(database, clock=site.clock) as other,
        Site(other, site.clock).storage.try_lock(),
    ):
        assert chores.run_due(site.clock.now) == []

        assert chores.find_next_time() == site.clock.now + timedelta(minutes=1)
        assert min(site.sizes()) > 10_000
    assert "bodies" in outcomes(chores.run_due(site.clock.advance(minutes=1)))


def test_a_failure_is_one_line_and_is_tried_again_ever_later(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.tell(0, 1)
    folder = tmp_path / "backups"
    chores = site.make(backup_folder=str(folder))

    def broken(*_: object) -> TaskRecord:
        raise MemoryError("of\nall things")

    with monkeypatch.context() as patch:
        patch.setattr(Recompression, "run", broken)
        reports = chores.run_due(site.clock.now)
    assert outcomes(reports) == dict.fromkeys(ALL, FAILED)
    assert of("bodies", reports).reason == r"MemoryError('of\nall things')"
    assert of("backup", reports).reason == (
        f"no backup can be kept in {folder}: No such file or directory; "
        "check the folder, or set maintenance.backup_folder"
    )

    for minutes in (15, 30, 60, 120, 240, 360, 360):
        before = site.clock.advance(minutes=minutes) - timedelta(seconds=1)
        assert "backup" not in outcomes(chores.run_due(before))
        assert outcomes(chores.run_due(site.clock.now))["backup"] is FAILED
    folder.mkdir()
    site.clock.advance(hours=6)
    assert outcomes(chores.run_due(site.clock.now))["backup"] is DONE
    assert [one.failures for one in chores.read_status()] == [0] * 2


def test_a_log_that_cannot_grow_is_told_and_nothing_is_lost(site: Site) -> None:
    """Not even that it failed can be written down: then this process remembers it."""
    site.tell(0, 5)
    writer = sqlite_recorder(site.store).datastore.writer
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")
    chores = site.make()

    (report,) = chores.run_due(site.clock.now)

    assert report.outcome is FAILED
    assert "the disk is full: free some space" in str(report.reason)
    assert report.next_at == site.clock.now + timedelta(minutes=15)
    assert chores.find_next_time() == site.clock.now + timedelta(minutes=15)
    assert chores.run_due(site.clock.now) == []
    assert verify(site.store).violations == []

    writer.execute("PRAGMA max_page_count = 1000000")
    assert outcomes(chores.run_due(site.clock.advance(minutes=15))) == {"bodies": DONE}

"""The command line and the chores serve either database by its address."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import Clock

import cutbank
from cutbank import Block
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.runtime.archive.archive_writer import write_archive
from cutbank.adapters.runtime.importing.importer import import_path
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.settings.idle_settings import MaintenanceSettings

SAMPLE = next((Path(__file__).parents[2] / "samples" / "pi").glob("*.jsonl"))
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    monkeypatch.setenv("CUTBANK_DB", database)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))

    def running(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as exited:
            main(list(words))
        said = capsys.readouterr()
        assert isinstance(exited.value.code, int)
        return exited.value.code, said.out + said.err

    return running


def test_a_verb_that_reads_makes_no_database_and_one_that_writes_does(
    run: Run, engine: str
) -> None:
    words = {"sqlite": "does not exist: `import`", "postgres": "holds no sessions: `import`"}

    refused = [run("sessions"), run("sessions")]  # the first has made nothing
    appended = run("append", "a session", "a pebble")
    listed, found, verified = run("sessions"), run("search", "pebble"), run("verify")

    assert all(code != 0 and words[engine] in said for code, said in refused), refused
    assert [code for code, _ in (appended, listed, found, verified)] == [0] * 4, (
        appended,
        listed,
        found,
        verified,
    )
    assert "a session" in listed[1]
    assert "a session" in found[1]


def test_chores_are_done_and_a_backup_bears_the_name_of_its_log(
    database: str, engine: str, clock: Clock, tmp_path: Path
) -> None:
    with cutbank.open(database, clock=clock) as store:
        store.session("a session").append(Block.user("words " * 3_000))
        settings = MaintenanceSettings(rest=0.0, backup_folder=str(tmp_path))
        now: datetime = clock() + timedelta(days=9)

        reports = Maintenance(store, settings, lambda: now).run_due(now)

        often = {"sqlite": "checkpoint", "postgres": "statistics"}[engine]
        assert {one.chore for one in reports} >= {"backup", "bodies", often}
        assert {one.outcome for one in reports} == {TaskOutcome.DONE}, reports
        (backup,) = tmp_path.glob({"sqlite": "test-*.db", "postgres": "postgres-*.db"}[engine])
        assert Maintenance(store, settings, lambda: now).run_due(now) == []
    with cutbank.open(backup) as copy:
        assert [session.key for session in copy.sessions()] == ["a session"]


def test_what_was_imported_goes_by_an_archive_into_another_database_and_is_not_added_twice(
    database: str, engine: str, tmp_path: Path
) -> None:
    with cutbank.open(tmp_path / "from.db") as store:
        cutbank.import_transcripts(store, SAMPLE)
        write_archive(store.sessions(), tmp_path / "sessions.cutbank")
        views = [session.view().fingerprint for session in store.sessions()]

    with cutbank.open(database) as store:
        for added in (True, False):
            reports = list(import_path(store, tmp_path / "sessions.cutbank"))
            assert [one.errors for one in reports] == [[]]
            assert (reports[0].added > 0) == added
        assert [session.view().fingerprint for session in store.sessions()] == views
        (report,) = import_path(store, SAMPLE)
        assert (report.added, report.complete) == (0, True)

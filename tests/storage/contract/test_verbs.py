"""The command line and the chores serve either database by its address."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import Clock

from cutbank import Block, MaintenanceSettings, SessionStore
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome


def test_a_verb_that_reads_makes_no_database_and_one_that_writes_does(
    database: str,
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in (("CUTBANK_DB", database), ("XDG_DATA_HOME", tmp_path), ("HOME", tmp_path)):
        monkeypatch.setenv(name, str(value))
    missing = {"sqlite": "does not exist: `import`", "postgres": "holds no sessions: `import`"}

    for line, fails, words in (
        ("sessions", True, missing[engine]),
        ("sessions", True, missing[engine]),  # the first has made nothing
        ("append session pebble", False, ""),
        ("sessions", False, "session"),
        ("search pebble", False, "session"),
        ("verify", False, ""),
    ):
        with pytest.raises(SystemExit) as exited:
            main(line.split())
        said = "".join(capsys.readouterr())
        assert (bool(exited.value.code), words in said) == (fails, True), said


def test_chores_are_done_and_a_backup_bears_the_name_of_its_log(
    store: SessionStore, engine: str, clock: Clock, tmp_path: Path
) -> None:
    store.session("a session").append(Block.user("words " * 3_000))
    settings = MaintenanceSettings(backup_folder=str(tmp_path))
    now: datetime = clock() + timedelta(days=9)

    reports = Maintenance(store, settings).run_due(now)

    assert [one.chore for one in reports] == ["bodies", "backup"]
    assert {one.outcome for one in reports} == {TaskOutcome.DONE}, reports
    assert list(tmp_path.glob({"sqlite": "test-*.db", "postgres": "postgres-*.db"}[engine]))
    assert Maintenance(store, settings).run_due(now) == []

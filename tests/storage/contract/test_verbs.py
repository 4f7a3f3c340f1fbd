"""The command line and the chores serve either database by its address."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from clock import Clock

from cutbank import Block, SessionStore
from cutbank.adapters.interfaces.command_line.cli import main
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.settings.idle_settings import MaintenanceSettings

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

    for _ in range(2):  # the first has made nothing
        code, said = run("sessions")
        assert code
        assert words[engine] in said
    assert run("append", "a session", "a pebble")[0] == 0
    for verb in (["sessions"], ["search", "pebble"], ["verify"]):
        code, said = run(*verb)
        assert (code, verb == ["verify"] or "a session" in said) == (0, True), said


def test_chores_are_done_and_a_backup_bears_the_name_of_its_log(
    store: SessionStore, engine: str, clock: Clock, tmp_path: Path
) -> None:
    store.session("a session").append(Block.user("words " * 3_000))
    settings = MaintenanceSettings(rest=0.0, backup_folder=str(tmp_path))
    now: datetime = clock() + timedelta(days=9)

    reports = Maintenance(store, settings, lambda: now).run_due(now)

    often = {"sqlite": "checkpoint", "postgres": "statistics"}[engine]
    assert {one.chore for one in reports} >= {"backup", "bodies", often}
    assert {one.outcome for one in reports} == {TaskOutcome.DONE}, reports
    assert list(tmp_path.glob({"sqlite": "test-*.db", "postgres": "postgres-*.db"}[engine]))
    assert Maintenance(store, settings, lambda: now).run_due(now) == []

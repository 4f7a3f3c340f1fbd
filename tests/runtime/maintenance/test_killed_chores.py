"""Whoever is killed at a chore leaves everything whole, and the next does what is left to do."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import victims
from databases import connected_to, each_database
from faulty import texts
from kill_steps import ANY
from processes import Processes, processes
from psycopg.sql import SQL, Identifier

import cutbank
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.maintenance.backups import UNFINISHED
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.settings.idle_settings import MaintenanceSettings
from cutbank.adapters.storage.postgres.postgres_address import PostgresAddress
from cutbank.adapters.storage.read_models.location import find_read_models

from .conftest import StillClock, sizes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")

MOST = 20
"""Kills of all chores, spread over their steps."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def state_folder(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for this process and for those that are killed."""
    monkeypatch.setenv("XDG_STATE_HOME", state)


@pytest.fixture(scope="module")
def run(state: str) -> Iterator[Processes]:
    with processes({"XDG_STATE_HOME": state}) as run:
        yield run


class Ground:
    """A log with large bodies, read models, and two backups; made for each kill."""

    def __init__(self, address: str, folder: Path, run: Processes) -> None:
        self.address, self.folder, self.run = address, folder, run
        self.backups = folder / "backups"

    def fresh(self) -> None:
        self.clear()
        self.backups.mkdir()
        with cutbank.open(self.address) as store:
            for number in range(12):
                victims.append_turn(store.session("session"), number)
                store.read_models.catch_up()
            settings = MaintenanceSettings(
                rest=0.0, cold_after=None, backup_folder=str(self.backups), backup_keep=2
            )
            for days in (3, 2):
                clock = StillClock()
                clock.now = datetime.now(UTC) - timedelta(days=days)
                Maintenance(store, settings, clock).run_due(clock.now)
            self.texts = texts(store.session("session"))
            self.large = max(sizes(store))
        assert len(self.whole()) == 2

    def clear(self) -> None:
        shutil.rmtree(self.backups, ignore_errors=True)
        if self.address.startswith("postgresql:"):
            schema = PostgresAddress.parse(self.address).schema
            with connected_to(self.address) as server:
                server.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
        else:
            for file in self.folder.glob("log.*"):
                file.unlink()
        for end in ("", "-wal", "-shm", "-chores"):
            Path(find_read_models(self.address) + end).unlink(missing_ok=True)

    def whole(self) -> list[str]:
        """The backups that have their name; each has to hold everything."""
        found = [file for file in self.backups.iterdir() if file.name.endswith("Z.db")]
        for file in found:
            copy = self.folder / "copied.db"
            shutil.copy(file, copy)
            with cutbank.open(copy) as store:
                assert len(texts(store.session("session", create=False))) > 40
                assert verify(store).violations == []
            copy.unlink()
        return [file.name for file in found]

    def kill(self, pattern: str, nth: int) -> bool:
        self.fresh()
        ended = self.run.killed_at(
            pattern, nth, "steps", "chores", self.address, 0, "", self.backups
        )
        assert ended.was_killed or ended.codes == [0], ended
        assert len(self.whole()) >= 2
        self.check()
        self.run.run("chores", self.address, self.backups)
        self.check_done()
        return ended.was_killed

    def check(self) -> None:
        with cutbank.open(self.address) as store:
            assert texts(store.session("session")) == self.texts
            assert verify(store).violations == []

    def check_done(self) -> None:
        self.check()
        assert len(self.whole()) == 2
        assert [file.name for file in self.backups.iterdir() if UNFINISHED in file.name] == []
        with cutbank.open(self.address) as store:
            assert max(sizes(store)) < self.large / 10
            settings = MaintenanceSettings(backup_folder=str(self.backups))
            status = Maintenance(store, settings, store.events.clock).read_status()
            assert {one.outcome for one in status} == {TaskOutcome.DONE}
            assert len(status) == 4
            found = store.search("says", limit=99)
            assert len(found) == 12
            session = store.session("session")
            assert session.append(Block.user("goes on")).last == session.position


@pytest.fixture
def ground(engine: str, tmp_path: Path, run: Processes, request: pytest.FixtureRequest) -> Ground:
    if engine == "sqlite":
        return Ground(str(tmp_path / "log.db"), tmp_path, run)
    return Ground(request.getfixturevalue("postgres_database"), tmp_path, run)


@each_database
@pytest.mark.slow
def test_a_kill_at_any_step_leaves_everything_whole(ground: Ground) -> None:
    ground.fresh()
    ended = ground.run.killed_at(ANY, 0, "counted", "chores", ground.address, 0, "", ground.backups)
    assert ended.codes == [0], ended
    ((count,),) = ended.told("steps")
    steps = int(count)
    spread = sorted({1 + number * (steps - 1) // (MOST - 1) for number in range(MOST)})

    kills = [ground.kill(ANY, step) for step in spread]

    assert all(kills[:-1])  # at the very end, the last step of all may be another one
    assert len(kills) >= MOST // 2


@each_database
def test_of_many_at_once_one_does_each_chore(ground: Ground) -> None:
    ground.fresh()

    ended = ground.run.run_together(6, "chores", ground.address, ground.backups)

    # Who finds another one at it leaves a chore for later, and all may have: then it is done now.
    later = ground.run.run_together(1, "chores", ground.address, ground.backups)
    told = [*ended.told("chore"), *later.told("chore")]
    done = sorted(chore for chore, outcome, _ in told if outcome == "done")
    routine = "statistics" if ground.address.startswith("postgresql:") else "checkpoint"
    assert done == sorted(["backup", "bodies", "read-models", routine])
    assert {outcome for _, outcome, _ in told} == {"done"}
    ground.check_done()

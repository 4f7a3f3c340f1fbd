"""Whoever is killed at a chore leaves everything whole, and the next does what is left to do."""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import victims
from clock import StillClock
from databases import connected_to, each_database
from faulty import texts
from kill_steps import ANY
from processes import processes
from psycopg.sql import SQL, Identifier

import cutbank
from cutbank import Block, MaintenanceSettings, verify
from cutbank.adapters.runtime.maintenance.backups import UNFINISHED
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome
from cutbank.adapters.storage.event_log.addresses import PostgresAddress
from cutbank.adapters.storage.read_models.read_model_file import find_read_models

from .conftest import sizes

MOST = 10
"""Kills of all chores, spread over their steps."""


class Ground:
    """A log with large bodies and two backups; made for each kill."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.backups = folder / "backups"
        self.settings = MaintenanceSettings(
            cold_after=None, backup_folder=str(self.backups), backup_keep=2
        )

    def make(self) -> None:
        self.clear()
        self.backups.mkdir()
        with cutbank.open(self.address) as store:
            for number in range(12):
                victims.append_turn(store.session("session"), number)
            clock = StillClock()
            for days in (3, 2):
                clock.now = datetime.now(UTC) - timedelta(days=days)
                Maintenance(store, self.settings).run_due(clock.now)
            self.texts = texts(store.session("session"))
            self.large = max(sizes(store))
        assert self.count_whole() == 2

    def clear(self) -> None:
        shutil.rmtree(self.backups, ignore_errors=True)
        if self.address.startswith("postgresql:"):
            schema = PostgresAddress.parse(self.address).schema
            with connected_to(self.address) as server:
                server.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))
        for name in (self.address, find_read_models(self.address)):
            for end in ("", "-wal", "-shm", "-chores"):
                with suppress(OSError):
                    Path(name + end).unlink()

    def count_whole(self) -> int:
        """How many backups have their name; each has to hold everything."""
        found = list(self.backups.glob("*Z.db"))
        for file in found:
            copy = Path(shutil.copy(file, self.folder / "copied.db"))
            with cutbank.open(copy) as store:
                assert len(texts(store.session("session", create=False))) > 40
                assert verify(store).violations == []
            copy.unlink()
        return len(found)

    def check(self, *, is_done: bool) -> None:
        backups = self.count_whole()
        with cutbank.open(self.address) as store:
            assert texts(store.session("session")) == self.texts
            assert verify(store).violations == []
            if not is_done:
                assert backups >= 2
                return
            assert backups == 2
            assert list(self.backups.glob(f"*{UNFINISHED}*")) == []
            assert max(sizes(store)) < self.large / 10
            settings = self.settings.model_copy(update={"cold_after": 7.0})
            status = Maintenance(store, settings).read_status()
            assert [one.outcome for one in status] == [TaskOutcome.DONE] * 2
            session = store.session("session")
            assert session.append(Block.user("goes on")).last == session.position


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")
@each_database
@pytest.mark.slow
def test_a_kill_at_any_step_leaves_everything_whole(database: str, tmp_path: Path) -> None:
    ground = Ground(database, tmp_path)
    words = ("chores", database, 0, "", ground.backups)
    kills = []
    with processes() as run:
        ground.make()
        ended = run.killed_at(ANY, 0, "counted", *words)
        assert ended.codes == [0], ended
        steps = int(ended.told("steps")[0][0])
        for step in sorted({1 + number * (steps - 1) // (MOST - 1) for number in range(MOST)}):
            ground.make()
            ended = run.killed_at(ANY, step, "steps", *words)
            assert ended.was_killed or ended.codes == [0], ended
            kills.append(ended.was_killed)
            ground.check(is_done=False)
            run.run("chores", database, ground.backups)
            ground.check(is_done=True)

    assert all(kills[:-1])  # at the very end, the last step of all may be another one
    assert len(kills) >= MOST // 2

"""A worker does the chores where no session is due, and tells of each."""

import pytest

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.maintenance_runner import Upkeep
from cutbank.adapters.runtime.idle.notices import About, Notice
from cutbank.adapters.runtime.maintenance.maintenance import Chores
from cutbank.adapters.settings.maintenance_settings import ChoreSettings

from .conftest import StillClock


@pytest.fixture
def heard() -> list[Notice]:
    return []


def test_a_worker_does_the_chores_that_are_due(
    engine: str, store: SessionStore, clock: StillClock, heard: list[Notice]
) -> None:
    store.session("a session").append(Block.user("words"))
    clock.advance(minutes=2)
    upkeep: Upkeep = Chores(store, ChoreSettings(backup_folder="/no such folder"), clock)
    worker = IdleWorker(store, heard=[heard.append], upkeep=upkeep)

    worker.look()
    assert worker.wait(60)

    often = "checkpoint" if engine == "sqlite" else "statistics"
    told = {notice.chore: notice for notice in heard if notice.chore}
    assert {name: notice.about for name, notice in told.items()} == {
        "bodies": About.CHORE_DONE,
        "read-models": About.CHORE_DONE,
        "backup": About.CHORE_FAILED,
        often: About.CHORE_DONE,
    }
    assert "/no such folder" in str(told["backup"].reason)
    heard.clear()
    worker.look()
    assert worker.wait(60)
    assert [notice for notice in heard if notice.chore] == []
    assert worker.stop(60)


def test_a_worker_leaves_chores_alone_while_somebody_writes(
    store: SessionStore, clock: StillClock, heard: list[Notice]
) -> None:
    store.session("a session").append(Block.user("words"))
    worker = IdleWorker(
        store, heard=[heard.append], upkeep=Chores(store, ChoreSettings(rest=60.0), clock)
    )

    worker.look()
    assert worker.wait(60)

    assert [notice for notice in heard if notice.chore] == []
    clock.advance(seconds=61)
    worker.look()
    assert worker.wait(60)
    assert len([notice for notice in heard if notice.chore]) == 3
    assert worker.stop(60)

"""A worker does the chores where no session is due, and tells of each."""

import pytest

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.settings.idle_settings import MaintenanceSettings

from .conftest import StillClock


@pytest.fixture
def heard() -> list[WorkerNotice]:
    return []


def test_a_worker_does_the_chores_that_are_due(
    store: SessionStore, clock: StillClock, heard: list[WorkerNotice]
) -> None:
    store.session("a session").append(Block.user("words"))
    clock.advance(minutes=2)
    upkeep = Maintenance(store, MaintenanceSettings(backup_folder="/no such folder"), clock)
    worker = IdleWorker(store, listeners=[heard.append], maintenance=upkeep)

    worker.look()
    assert worker.wait(60)

    told = {notice.chore: notice for notice in heard if notice.chore}
    assert {name: notice.about for name, notice in told.items()} == {
        "bodies": NoticeKind.CHORE_DONE,
        "read-models": NoticeKind.CHORE_DONE,
        "backup": NoticeKind.CHORE_FAILED,
        "checkpoint": NoticeKind.CHORE_DONE,
    }
    assert "/no such folder" in str(told["backup"].reason)
    heard.clear()
    worker.look()
    assert worker.wait(60)
    assert [notice for notice in heard if notice.chore] == []
    assert worker.stop(60)

"""What tests of chores share: a clock, chores by settings, and bodies that can be recompressed."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from databases import asked

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome, TaskReport
from cutbank.adapters.settings.idle_settings import MaintenanceSettings
from cutbank.adapters.storage.event_log.storage_tasks import Storage

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server's read models go must not be the home of who runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class StillClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **duration: float) -> datetime:
        self.now += timedelta(**duration)
        return self.now


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


Make = Callable[..., Maintenance]


@pytest.fixture
def make(store: SessionStore, clock: StillClock) -> Make:
    """Chores of the store by these settings; nobody has to rest unless a test says so."""
    assert store.read_models.position == 0  # the file is there

    def made(**settings: Any) -> Maintenance:
        return Maintenance(
            store, MaintenanceSettings.model_validate({"rest": 0.0} | settings), clock
        )

    return made


def tell(store: SessionStore, first: int, last: int, key: str = "a session") -> None:
    """Append blocks whose text is a body each."""
    session = store.session(key)
    for number in range(first, last):
        session.append(Block.user(text_of(number)))


def of(name: str, reports: list[TaskReport]) -> TaskReport:
    """The report of that chore."""
    return next(report for report in reports if report.chore == name)


def storage_of(store: SessionStore) -> Storage:
    storage = store.events.recorder.get_storage()
    assert storage
    return storage


def text_of(number: int) -> str:
    return f"{number} is what was said. " * 700


def sizes(store: SessionStore) -> list[int]:
    """Bytes of each body as it is stored, in the order in which they came."""
    return [size for (size,) in asked(store, "SELECT length(content) FROM bodies ORDER BY id")]


def outcomes(reports: list[TaskReport]) -> dict[str, TaskOutcome]:
    return {report.chore: report.outcome for report in reports}

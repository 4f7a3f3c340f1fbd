"""What tests of chores share: a clock, chores by settings, and bodies that can be recompressed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clock import StillClock
from databases import asked

from cutbank import Block, MaintenanceSettings, SessionStore, StoredSession
from cutbank.adapters.runtime.maintenance.maintenance import Maintenance
from cutbank.adapters.runtime.maintenance.maintenance_task import TaskOutcome, TaskStatus
from cutbank.adapters.storage.event_log.recorder import Recorder

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server's read models go must not be the home of who runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def tell(store: SessionStore, first: int, last: int) -> None:
    """Append blocks whose text is a body each."""
    session = store.session("a session")
    for number in range(first, last):
        session.append(Block.user(text_of(number)))


def of(name: str, reports: list[TaskStatus]) -> TaskStatus:
    """The report of that chore."""
    return next(report for report in reports if report.chore == name)


def text_of(number: int) -> str:
    return f"{number} is what was said. " * 700


def sizes(store: SessionStore) -> list[int]:
    """Bytes of each body as it is stored, in the order in which they came."""
    return [size for (size,) in asked(store, "SELECT length(content) FROM bodies ORDER BY id")]


def outcomes(reports: list[TaskStatus]) -> dict[str, TaskOutcome | None]:
    return {report.chore: report.outcome for report in reports}


@dataclass
class Site:
    """A store to maintain, and its clock."""

    store: SessionStore
    clock: StillClock

    @property
    def session(self) -> StoredSession:
        return self.store.session("a session")

    def make(self, **settings: Any) -> Maintenance:
        """Chores of the store by these settings."""
        return Maintenance(self.store, MaintenanceSettings.model_validate(settings))

    def say(self, words: str = "words") -> None:
        self.session.append(Block.user(words))

    def tell(self, first: int, last: int) -> None:
        tell(self.store, first, last)

    def sizes(self) -> list[int]:
        return sizes(self.store)

    @property
    def storage(self) -> Recorder:
        return self.store.events.recorder

    def run_due(self) -> list[TaskStatus]:
        return self.make().run_due(self.clock.now)


@pytest.fixture
def site(store: SessionStore, clock: StillClock) -> Site:
    return Site(store, clock)

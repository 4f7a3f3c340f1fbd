"""A store for idle work, whose workers are stopped in the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clock import Clock
from resting import SETTINGS, Held, Idle, Told

import cutbank
from cutbank import SessionStore
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server's read models go must not be the home of who runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def store(database: str, clock: Clock) -> Iterator[SessionStore]:
    with cutbank.open(database, clock=clock, settings=SETTINGS) as store:
        yield store


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def idle(store: SessionStore, clock: Clock, told: Told) -> Iterator[Idle]:
    idle = Idle(store, clock, told)
    yield idle
    for worker in idle.workers:
        worker.stop()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Writes all summaries; the first one waits until it is let go."""
    held = Held()
    chain = SummaryChain((held,), retries=0)
    monkeypatch.setattr(from_settings, "make_summary_chain", lambda *_: chain)
    yield held
    held.let_all_go()

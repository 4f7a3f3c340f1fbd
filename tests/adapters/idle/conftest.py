"""Workers on the test's store, which are stopped in the end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from resting import RULES, Told, Working

from cutbank import SessionStore
from cutbank.adapters.idle.worker import IdleWorker
from cutbank.domain.idle import IdleRules


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a server's read models go must not be the home of who runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def working(store: SessionStore, told: Told) -> Iterator[Working]:
    """Makes workers by rules, which tell `told`."""
    workers: list[IdleWorker] = []

    def works(rules: IdleRules = RULES, *, name: str | None = None) -> IdleWorker:
        workers.append(IdleWorker(store, rules, name=name, heard=[told]))
        return workers[-1]

    yield works
    for worker in workers:
        worker.stop()

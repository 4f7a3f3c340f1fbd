"""Workers on the test's store, which are stopped in the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clock import Clock
from resting import RULES, SETTINGS, Held, Told, Working

import cutbank
from cutbank import SessionStore
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.domain.idle_rules import IdleRules
from cutbank.domain.summaries.summarizer import Summarizer


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
def working(store: SessionStore, told: Told) -> Iterator[Working]:
    """Makes workers by rules, which tell `told`."""
    workers: list[IdleWorker] = []

    def works(rules: IdleRules = RULES, *, name: str | None = None) -> IdleWorker:
        workers.append(IdleWorker(store, rules, name=name, listeners=[told]))
        return workers[-1]

    yield works
    for worker in workers:
        worker.stop()


WrittenBy = Callable[[Summarizer], None]


@pytest.fixture
def written_by(monkeypatch: pytest.MonkeyPatch) -> WrittenBy:
    """Says who writes what the settings would let others write."""

    def writes(summariser: Summarizer) -> None:
        chain = SummaryChain((summariser,), retries=0)
        monkeypatch.setattr(from_settings, "make_summary_chain", lambda *_: chain)

    return writes


@pytest.fixture
def held(written_by: WrittenBy) -> Iterator[Held]:
    """Writes all summaries; the first one waits until it is let go."""
    held = Held()
    written_by(held)
    yield held
    held.let_all_go()

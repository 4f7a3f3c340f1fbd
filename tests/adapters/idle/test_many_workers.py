"""Eight workers on one database, some killed, one stopped, one in another hour: all goes once."""

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from databases import on_sqlite
from idle_worker import DIED, POISON, PRICE
from resting import WORDS, decisions, recorded
from worker_processes import GUARD_S, workers_on

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionRejected,
    CompactionRequested,
)
from cutbank.domain.event import Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here"),
]

SHIM = Path(__file__).parents[2] / "support" / "shifted_clock.c"
HOUR_S = 3_600
LEASE_S = 15.0
"""Of those that are killed or stopped: all of them have begun long before it is over."""
RULES: dict[str, Any] = {
    "idle_time_s": 0,
    "least_utilisation": 0.05,
    "concurrency": 1,
    "hourly_usd": None,
    "backoff_s": 0,
    "lease_s": 300.0,
}
HOLDING: dict[str, Any] = {**RULES, "lease_s": LEASE_S, "holds": 1}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where a server's read models go, which all workers of one machine share."""
    return tmp_path / "state"


@pytest.fixture(scope="module")
def in_an_hour(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What makes a process believe that it is an hour later."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a wrong clock is preloaded: that needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("shim") / "shifted_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(HOUR_S)}


def at_rest(database: str, count: int, *more: str) -> None:
    """So many sessions that nobody is at; of each, the newest 20,000 tokens are kept."""
    with cutbank.open(database) as store:
        known = {session.key for session in store.sessions()}
        for key in (f"s{number}" for number in range(count)):
            if key not in known:
                turns = (f"{turn}: {WORDS * 320}" for turn in range(6))
                store.session(key).append(*map(Block.user, (*more, *turns)))


def check(database: str, *, requests: int) -> list[Event]:
    """Each session was compacted once, under so many requests in all, and the log is sound.

    Returns all that was recorded of it.
    """
    with cutbank.open(database) as store:
        sessions = store.sessions()
        for session in sessions:
            assert len(recorded(session, CompactBoundary)) == 1, session
            assert len(recorded(session, BoundaryActivated)) == 1, session
            assert session.compactor().decisions.state().requested == 0, session
            _check_leases(session)
        assert sum(len(recorded(one, CompactionRequested)) for one in sessions) == requests
        assert verify(store).violations == []
        return [event for session in sessions for event in decisions(session)]


def _check_leases(session: StoredSession) -> None:
    """Nobody takes over before the lease of whoever was at it has run out."""
    requests = recorded(session, CompactionRequested)
    for before, after in pairwise(requests):
        assert before.lease_s is not None
        assert after.timestamp >= before.timestamp + timedelta(seconds=before.lease_s), session


@on_sqlite
def test_eight_workers_on_one_file_compact_each_session_once(database: str, state: Path) -> None:
    at_rest(database, 40)
    with workers_on(database, state) as workers:
        dying = workers.start("dying", **HOLDING)
        workers.wait_until(lambda: bool(dying.about("writing")))
        for number in range(7):
            workers.start(f"w{number}", **RULES)
        workers.wait_until(lambda: bool(workers.about("done")))
        dying.kill()
        workers.wait_until(lambda: len(workers.about("done")) == 40)
        workers.stop()

    check(database, requests=40 + 1)
    assert not workers.about("lost") + workers.about("failed")
    assert len({done["worker"] for done in workers.about("done")}) > 1


def test_workers_that_die_stop_or_live_in_another_hour_make_nothing_happen_twice(
    postgres_database: str, state: Path, in_an_hour: dict[str, str]
) -> None:
    at_rest(postgres_database, 24)
    began = datetime.now(UTC)
    with workers_on(postgres_database, state) as workers:
        holding = [workers.start(f"holding {number}", **HOLDING) for number in range(3)]
        workers.wait_until(lambda: all(worker.about("writing") for worker in holding))
        *killed, stopped = holding
        for worker in killed:
            worker.kill()
        stopped.signal(signal.SIGSTOP)
        shifted = workers.start("in an hour", env=in_an_hour, **RULES)
        for number in range(4):
            workers.start(f"w{number}", **RULES)
        workers.wait_until(lambda: len(workers.about("done")) == 24)
        assert not stopped.about("lost")
        stopped.tell("go")
        stopped.signal(signal.SIGCONT)
        workers.wait_until(lambda: bool(stopped.about("lost")))
        workers.stop()

    events = check(postgres_database, requests=24 + 3)
    (lost,) = workers.about("lost")
    died_at = {worker.about("began")[-1]["session"] for worker in killed}
    assert len(died_at | {lost["session"]}) == 3
    assert not workers.about("failed")
    (rejected,) = [event for event in events if isinstance(event, CompactionRejected)]
    assert (rejected.rule, rejected.cost_usd) == ("lost-lease", PRICE)
    # Whoever lives in another hour goes by the server's clock.
    (clock,) = shifted.about("clock")
    assert datetime.fromisoformat(clock["shows"]) > began + timedelta(minutes=59)
    requests = [event for event in events if isinstance(event, CompactionRequested)]
    assert "in an hour" in {one.by for one in requests}
    assert all(began <= one.timestamp <= datetime.now(UTC) for one in requests)


def test_a_session_that_kills_its_workers_is_given_up_and_holds_up_no_other(
    database: str, state: Path
) -> None:
    at_rest(database, 1, POISON)
    rules = {**RULES, "lease_s": 1.0, "attempts": 2}
    with workers_on(database, state) as workers:
        for number in range(2):
            worker = workers.start(f"w{number}", **rules)
            assert worker.process.wait(GUARD_S) == DIED
        at_rest(database, 3)
        survivor = workers.start("survivor", **rules)
        workers.wait_until(lambda: len(workers.about("done")) == 2)
        looks = len(survivor.about("looked"))
        workers.wait_until(lambda: len(survivor.about("looked")) > looks)
        workers.stop()

    assert sorted(done["session"] for done in workers.about("done")) == ["s1", "s2"]
    with cutbank.open(database) as store:
        poison = store.session("s0", create=False)
        assert [one.by for one in recorded(poison, CompactionRequested)] == ["w0", "w1"]
        assert recorded(poison, CompactBoundary) == []

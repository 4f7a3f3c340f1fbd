"""Eight processes on one database, of which one is killed, compact each session once."""

import os
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from databases import each_database
from resting import WORDS, recorded
from worker_processes import workers_on

import cutbank
from cutbank import Block, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionRequested,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here"),
]

LEASE_S = 15.0
"""Of the one that is killed: it has begun long before it is over."""
RULES: dict[str, Any] = {
    "idle_time_s": 0,
    "least_utilization": 0.05,
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


def at_rest(database: str, count: int) -> None:
    """So many sessions that nobody is at; of each, the newest 20,000 tokens are kept."""
    with cutbank.open(database) as store:
        for number in range(count):
            turns = (f"{turn}: {WORDS * 320}" for turn in range(6))
            store.session(f"s{number}").append(*map(Block.user, turns))


def check(database: str, *, requests: int) -> None:
    """Each session was compacted once, under so many requests in all, and the log is sound."""
    with cutbank.open(database) as store:
        sessions = store.sessions()
        for session in sessions:
            assert len(recorded(session, CompactBoundary)) == 1, session
            assert len(recorded(session, BoundaryActivated)) == 1, session
            assert session.log.compactor().decisions.read_state().requested == 0, session
            _check_leases(session)
        assert sum(len(recorded(one, CompactionRequested)) for one in sessions) == requests
        assert verify(store).violations == []


def _check_leases(session: StoredSession) -> None:
    """Nobody takes over before the lease of whoever was at it has run out."""
    requests = recorded(session, CompactionRequested)
    for before, after in pairwise(requests):
        assert before.lease_s is not None
        assert after.timestamp >= before.timestamp + timedelta(seconds=before.lease_s), session


@each_database
def test_eight_workers_of_which_one_is_killed_compact_each_session_once(
    database: str, state: Path
) -> None:
    at_rest(database, 24)
    with workers_on(database, state) as workers:
        dying = workers.start("dying", **HOLDING)
        workers.wait_until(lambda: bool(dying.about("writing")))
        for number in range(7):
            workers.start(f"w{number}", **RULES)
        workers.wait_until(lambda: bool(workers.about("done")))
        dying.kill()
        workers.wait_until(lambda: len(workers.about("done")) == 24)
        workers.stop()

    check(database, requests=24 + 1)
    assert not workers.about("lost") + workers.about("failed")
    assert len({done["worker"] for done in workers.about("done")}) > 1

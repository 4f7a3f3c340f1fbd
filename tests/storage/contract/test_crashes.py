"""A process that is killed at any moment, forked or overtaken loses nothing that is stored."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
import victims
from acknowledged import Acknowledged
from processes import Processes

import cutbank
from cutbank import Block
from cutbank.adapters.analysis.verifier import verify

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")

FORKS = Path(__file__).parents[2] / "support" / "forks_while_writing.py"
LAG = 100_000
"""Up to some milliseconds, which is longer than an append takes."""


@pytest.mark.parametrize(
    ("part", "kills"), [(0, 2), *(pytest.param(n, 20, marks=pytest.mark.slow) for n in range(1, 7))]
)
@pytest.mark.parametrize("work", ["appends", "compacts"])
def test_what_was_acknowledged_survives_a_kill(
    database: str, run: Processes, part: int, kills: int, work: str
) -> None:
    random, acknowledged = Random(part), Acknowledged()  # noqa: S311 - nothing here is secret

    for _ in range(kills):
        # It begins a little earlier than it was told, as if acknowledgements had been lost.
        first = max(0, acknowledged.turns - random.randint(1, 3))
        lines, lag = random.randint(0, 40), random.randint(0, LAG)
        ended = run.killed_after(lines, lag, work, database, first)

        acknowledged.take(ended)
        with cutbank.open(database) as store:
            acknowledged.check(store)
            acknowledged.check_boundaries(store.session("session"))

    assert acknowledged.turns > kills
    assert len(acknowledged.boundaries) >= (kills if work == "compacts" else 0)
    with cutbank.open(database) as store:
        session = store.session("session")
        session.append(*(Block.user("goes on. " * 900) for _ in range(4)))
        outcome = session.compact(victims.POLICY, limit=victims.LIMIT)
        view = session.view()
        assert view.boundary is not None
        assert view.boundary.originator_version == outcome.boundary
        assert verify(store).is_ok


# Not killed


def check_forks(name: str, database: str) -> None:
    """Run a check in a process of its own, which holds nothing that other tests have left."""
    program = [sys.executable, str(FORKS), name, database]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr


def test_a_child_that_is_forked_while_threads_write_goes_on_at_once(database: str) -> None:
    check_forks("forks", database)


def test_a_forked_child_does_not_end_the_sessions_of_its_parents_threads(
    postgres_database: str,
) -> None:
    check_forks("waiting", postgres_database)

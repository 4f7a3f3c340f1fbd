"""Processes that begin together, or are forked while threads write, lose nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faulty import check_log, texts
from processes import Processes

import cutbank

FORKS = Path(__file__).parents[2] / "support" / "forks_while_writing.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")


def check(name: str, database: str) -> None:
    """Run a check in a process of its own, which holds nothing that other tests have left."""
    program = [sys.executable, str(FORKS), name, database]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr


def test_a_child_that_is_forked_while_threads_write_goes_on_at_once(database: str) -> None:
    check("forks", database)


def test_a_forked_child_does_not_end_the_sessions_of_its_parents_threads(
    postgres_database: str,
) -> None:
    check("waiting", postgres_database)


def test_processes_that_begin_together_on_a_new_database_all_get_in(
    database: str, run: Processes
) -> None:
    ended = run.run_together(8, "joins", database, "NUMBER")

    assert len(ended.told("ack")) == 8
    with cutbank.open(database) as store:
        assert [session.key for session in store.sessions()] == ["joined"]
        assert sorted(texts(store.session("joined"))) == [f"{n} was here" for n in range(8)]
        check_log(store)

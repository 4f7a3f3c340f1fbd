"""A cluster comes to what one process would, whatever becomes of its workers."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cutbank import SessionStore
from cutbank.adapters.analysis.backtest import cluster as clusters
from cutbank.domain.backtest.cell import CellOutcome
from cutbank.domain.errors import BacktestError

from .conftest import Bring
from .test_running import cell, measure, timeless

POLICIES = ["none", "pi"]


@contextmanager
def local(workers: int) -> Iterator[Any]:
    """A cluster on this machine, each worker a process of its own."""
    distributed = pytest.importorskip("distributed", reason="the extra cutbank[cluster] is missing")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as found:
        yield found


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    with local(2) as found:
        yield found


@pytest.mark.slow
def test_a_cluster_comes_to_the_same_even_where_a_worker_is_killed(
    talks: SessionStore, dask: Any
) -> None:
    killed: list[int] = []

    def kill_one(done: int, _total: int) -> None:
        if done and not killed:
            killed.append(next(iter(dask.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    there = measure(talks, POLICIES, cluster=dask.scheduler_address, progress=kill_one)

    assert killed
    assert timeless(there) == timeless(measure(talks, POLICIES))


@pytest.mark.slow
def test_a_policy_that_ends_its_process_costs_its_rows_there_as_well(
    talks: SessionStore, bring: Bring
) -> None:
    bring("ends", "if len(items) > 9: os._exit(3)")

    with local(1) as dask:  # who is started now finds the package
        measured = measure(talks, ["none", "ends"], cluster=dask.scheduler_address)

    ended = cell(measured, "a", "ends")
    assert (ended.outcome, ended.why) == (CellOutcome.DIED, "its process ended with 3")
    assert cell(measured, "a", "none").outcome is CellOutcome.DONE
    assert cell(measured, "c", "ends").outcome is CellOutcome.DONE


def test_what_hinders_a_cluster_is_said_in_one_line(
    talks: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_S", 0.5)
    for address in ("tcp://127.0.0.1:9", "no address"):
        with pytest.raises(BacktestError, match="cannot be reached") as refused:
            measure(talks, POLICIES, cluster=address)
        assert "\n" not in str(refused.value)

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BacktestError, match=r"pip install 'cutbank\[cluster\]'"):
        measure(talks, POLICIES, cluster="tcp://127.0.0.1:9")


@pytest.mark.slow
def test_workers_with_other_code_are_refused(
    talks: SessionStore, dask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "hash_measuring_code", lambda: str(os.getpid()))

    with pytest.raises(BacktestError, match="have another cutbank"):
        measure(talks, POLICIES, cluster=dask.scheduler_address)

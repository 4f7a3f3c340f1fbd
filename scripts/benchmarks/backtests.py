"""How long a backtest takes, and how long the same one takes that was run before."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import cutbank
from cutbank.adapters.interfaces.commands.backtest import import_temporarily
from cutbank.adapters.interfaces.commands.demo import write_sample
from cutbank.adapters.runtime.sessions.session_store import SessionStore
from cutbank.domain.backtest_cell import BacktestResult
from cutbank.domain.policies.catalog import POLICIES

from .figure import Figure, Found, Options

LIMITS = (16_000, 32_000)
MOST_S = 60
"""Seconds of all recorded sessions under every policy at both limits, on two processes."""
PROCESSES = 2


def backtests(options: Options) -> Found:
    """All sessions of CUTBANK_SESSIONS under every policy; without it, or small, the sample."""
    recorded = None if options.smoke else os.environ.get("CUTBANK_SESSIONS")
    with sessions(options, recorded) as store:
        cache = options.folder / "backtests.db"
        (first, measured), (again, _) = (timed(store, cache) for _ in range(2))
    count = len({(cell.namespace, cell.session) for cell in measured.cells})
    what = f"backtest of {count} sessions, {len(measured.setups)} setups"
    target, met = (f"<= {MOST_S} s", first <= MOST_S) if recorded else ("", None)
    yield Figure(what, "s", first, target=target, met=met)
    yield Figure(f"{what}, from the cache", "s", again)
    replays = sum(cell.seconds for cell in measured.cells)
    yield Figure("replays and scores of it, of one processor", "s", replays)


def timed(store: SessionStore, cache: Path) -> tuple[float, BacktestResult]:
    began = perf_counter()
    measured = cutbank.backtest(store, [*POLICIES], limits=LIMITS, jobs=PROCESSES, cache=cache)
    return perf_counter() - began, measured


@contextmanager
def sessions(options: Options, recorded: str | None) -> Iterator[SessionStore]:
    """A database of them."""
    folder = Path(recorded or options.folder / "backtested")
    if recorded is None:
        folder.mkdir()
        write_sample(folder / "sample.jsonl")
    with import_temporarily(folder) as (store, _):
        yield store

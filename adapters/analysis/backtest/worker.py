"""Runs in a process of a backtest: reads one session after another, and measures it."""

import gc
import logging
import os
import pickle
from multiprocessing import parent_process
from threading import Thread
from typing import NamedTuple

from ....domain.backtest.cell import CellOutcome
from ....domain.errors import CutbankError, PolicyFailedError
from ....domain.models import ModelFacts
from ...runtime.sessions.session_store import SessionStore, open_store
from ...storage.event_log.storage_errors import translate_storage_errors
from .cells import CellBench, ItemResult, TaskItem
from .session_log import MeasuredSession, SessionRead, describe_log

COLLECT_AFTER_BLOCKS = 100_000
"""New objects that trigger a search for cycles."""


class SessionLocation(NamedTuple):
    """A session in a database that every process of this machine can open."""

    address: str
    namespace: str
    key: str


class MeasurementFailure(NamedTuple):
    outcome: CellOutcome
    reason: str


class _Worker:
    """What this process has open: databases, and the session that it measures."""

    def __init__(self) -> None:
        self.stores: dict[str, SessionStore] = {}
        self.location: SessionLocation | None = None
        self.log: MeasuredSession | None = None
        self.bench: CellBench | None = None

    def read(self, location: SessionLocation) -> MeasuredSession:
        """Read a session, and drop the one before."""
        self.location = self.log = self.bench = None
        gc.collect()  # what the session before has left
        if location.address not in self.stores:
            self.stores[location.address] = open_store(location.address)
        store = self.stores[location.address]
        with translate_storage_errors(store.name):
            session = store.session(location.key, namespace=location.namespace, create=False)
            self.log = MeasuredSession.read(session)
        self.location = location
        gc.freeze()  # a session holds many objects, which the collector would walk in vain
        return self.log

    def open_bench(self, location: SessionLocation, terms: bytes) -> CellBench:
        """Return the bench of a session, which is read again if another process had it."""
        log = self.log if self.location == location else None
        if log is None:
            log = self.read(location)
        if self.bench is None:
            self.bench = CellBench(log, pickle.loads(terms))  # noqa: S301 - by our pool
        return self.bench


_worker = _Worker()
"""That of this process, if it is one of a backtest."""


def start_worker() -> None:
    """Prepare this process: it prints nothing to the program's output, and ends with its parent."""
    os.dup2(2, 1)
    gc.set_threshold(COLLECT_AFTER_BLOCKS)
    logging.getLogger("cutbank.storage").disabled = True  # its parent has logged it
    Thread(target=_exit_with_parent, daemon=True).start()


def read_session(location: SessionLocation) -> SessionRead | MeasurementFailure:
    """Return what is known of a session before any measurement."""
    try:
        return describe_log(_worker.read(location))
    except Exception as error:  # noqa: BLE001 - one session that cannot be read stops no other
        reason = f"it cannot be read: {describe_error(error)}"
        return MeasurementFailure(CellOutcome.FAILED, reason)


def measure_item(
    location: SessionLocation, item: TaskItem, facts: ModelFacts | None, terms: bytes
) -> ItemResult | MeasurementFailure:
    """Measure one setup, or the controls at one limit; `terms` are pickled BenchTerms."""
    try:
        return _worker.open_bench(location, terms).measure(item, facts)
    except Exception as error:  # noqa: BLE001 - its row says it, and the others go on
        why = str(error) if isinstance(error, CutbankError) else describe_error(error)
        cause = error.__cause__ if isinstance(error, PolicyFailedError) else error
        if isinstance(cause, MemoryError):
            return MeasurementFailure(CellOutcome.DIED, f"it ran out of memory ({why})")
        return MeasurementFailure(CellOutcome.FAILED, why)


def describe_error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _exit_with_parent() -> None:
    """Exit when the parent process ends, even inside a policy's loop."""
    parent = parent_process()
    assert parent is not None, "a worker is started by a pool"
    parent.join()
    os._exit(1)

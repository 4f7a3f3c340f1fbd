"""Measures sessions in several processes; a cell that ends one or hangs costs one row."""

import gc
import logging
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessPool

from ....domain.backtest_cell import Cell, CellOutcome
from ....domain.errors import (
    BacktestError,
    CacheFileError,
    CutbankError,
    PolicyFailedError,
    describe_error,
)
from ...runtime.sessions.session_store import SessionStore, open_store
from ...settings.settings import Settings
from ...storage.event_log.storage_errors import translate_storage_errors
from .cells import ItemResult, MeasuredSession, TaskItem
from .result_cache import ResultCache, fingerprint_item, open_result_cache

logger = logging.getLogger("cutbank.backtest")

DEFAULT_TIMEOUT_S = 300.0
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""


COLLECT_AFTER_BLOCKS = 100_000
"""New objects that trigger a search for cycles."""


class BenchTerms(NamedTuple):
    """What all processes of a backtest share."""

    address: str
    """A database that every process of this machine can open."""
    settings: Settings
    """Settings of the compactions, as in an agent's loop."""
    cache: Path | None
    """The file that keeps results; None keeps nothing."""


class SessionTask(NamedTuple):
    """One session, and the items to measure."""

    namespace: str
    key: str
    items: Mapping[int, TaskItem]
    """Items by number in the whole backtest."""


class MeasurementFailure(NamedTuple):
    outcome: CellOutcome
    reason: str


class ItemAnswer(NamedTuple):
    """The outcome of one item of one session."""

    task: SessionTask
    number: int | None
    """The number of the item; None if the session was read, and nothing measured yet."""
    result: ItemResult | MeasurementFailure
    """What was measured, or, of a session that was read, the cell without any measurement."""


class _Step(NamedTuple):
    """What a process does now or next."""

    pool: ProcessPool
    task: SessionTask
    number: int | None = None
    """The item; None reads the session."""


def measure_tasks(
    tasks: Iterable[SessionTask], terms: BenchTerms, processes: int, timeout_s: float
) -> Generator[ItemAnswer]:
    """Yield the outcome of each item, in any order; always stop all processes at the end.

    Each process has one session at a time, so that it is read once. The longest tasks come first,
    so that the last one does not delay the end. A session without calls is read and not measured.
    Raises BacktestError if processes cannot be started.
    """
    todo = deque(tasks)
    steps: dict[Future[Any], _Step] = {}
    finished = SimpleQueue[Future[Any]]()

    def schedule(step: _Step, function: Callable[..., Any], *arguments: Any) -> None:
        arguments = (terms, step.task.namespace, step.task.key, *arguments)
        future = step.pool.schedule(function, arguments, timeout=timeout_s)
        steps[future] = step
        future.add_done_callback(finished.put)

    pools = [start_pool() for _ in range(min(processes, len(todo)))]
    try:
        for pool in pools:
            schedule(_Step(pool, todo.popleft()), read_session)
        while steps:
            future = finished.get()
            pool, task, number = steps.pop(future)
            result = _get_result(future, timeout_s)
            answers = [ItemAnswer(task, number, result)]
            if number is None and isinstance(result, MeasurementFailure):
                answers = [ItemAnswer(task, each, result) for each in task.items]
            elif isinstance(result, Cell) and number is None and result.calls:
                for each, item in task.items.items():
                    schedule(_Step(pool, task, each), measure_item, item)
            if todo and not any(step.pool is pool for step in steps.values()):
                schedule(_Step(pool, todo.popleft()), read_session)
            yield from answers
    finally:
        for pool in pools:
            pool.stop()  # type: ignore[no-untyped-call]
        for pool in pools:
            pool.join()


def start_pool() -> ProcessPool:
    """Return one process with its queue; it starts with its first task."""
    return ProcessPool(max_workers=1, initializer=start_worker, context=_SPAWN)


def _get_result(future: Future[Any], timeout_s: float) -> Any:
    """Return what a process answered; if it did not, the reason."""
    error = future.exception()
    match error:
        case None:
            return future.result()
        case TimeoutError():
            reason = f"it took more than {timeout_s:g} seconds"
            return MeasurementFailure(CellOutcome.TIMED_OUT, reason)
        case ProcessExpired():
            return MeasurementFailure(CellOutcome.DIED, _describe_exit(error.exitcode))
        case BrokenProcessPool():
            raise BacktestError(
                "a process of the backtest ended while it had nothing to do; in a script, call "
                'backtest below `if __name__ == "__main__":`; begin it again to go on'
            )
        case _:  # a policy may exit
            return MeasurementFailure(CellOutcome.DIED, describe_error(error))


def _describe_exit(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as where memory runs out"
    if code < 0:
        return f"its process ended by {signal.Signals(-code).name}"
    return f"its process ended with {code}"


# In a process of the pool


class Worker:
    """What this process has open: the database, the cache, and the session that it measures."""

    def __init__(self) -> None:
        self.terms: BenchTerms | None = None
        self.store: SessionStore
        self.cache: ResultCache | None = None
        self.session: tuple[str, str] | None = None
        self.measured: MeasuredSession | None = None

    def open_session(self, terms: BenchTerms, namespace: str, key: str) -> MeasuredSession:
        """Return a session, which is read again if another process had it."""
        if terms != self.terms:
            self.store = open_store(terms.address)
            self.cache = open_result_cache(terms.cache) if terms.cache else None
            self.terms, self.measured = terms, None
        if self.measured is None or self.session != (namespace, key):
            self.measured = None
            gc.collect()  # what the session before has left
            with translate_storage_errors(self.store.name):
                session = self.store.session(key, namespace=namespace, create=False)
                self.measured = MeasuredSession.read(session, terms.settings)
            self.session = namespace, key
            gc.freeze()  # a session holds many objects, which the collector would walk in vain
        return self.measured

    def measure(self, session: MeasuredSession, item: TaskItem) -> ItemResult:
        """Return the kept result, or measure it and keep it."""
        if self.cache is None or (key := fingerprint_item(session, item)) is None:
            return session.measure(item)
        if (found := self.cache.get(key)) is not None:
            return found
        result = session.measure(item)
        try:
            self.cache.put(key, result)
        except CacheFileError as error:
            # A full disk, for example, must not lose the results in memory.
            self.cache = None
            logger.warning("%s; nothing more is kept", error)
        return result


_worker = Worker()
"""That of this process, if it is one of a backtest."""


def start_worker() -> None:
    """Prepare this process: it prints nothing to the program's output, and ends with its parent."""
    os.dup2(2, 1)
    gc.set_threshold(COLLECT_AFTER_BLOCKS)
    logging.getLogger("cutbank.storage").disabled = True  # its parent has logged it
    Thread(target=_exit_with_parent, daemon=True).start()


def read_session(terms: BenchTerms, namespace: str, key: str) -> Cell | MeasurementFailure:
    """Return what is known of a session before any measurement."""
    try:
        return _worker.open_session(terms, namespace, key).blank_cell
    except Exception as error:  # noqa: BLE001 - one session that cannot be read stops no other
        reason = f"it cannot be read: {describe_error(error)}"
        return MeasurementFailure(CellOutcome.FAILED, reason)


def measure_item(
    terms: BenchTerms, namespace: str, key: str, item: TaskItem
) -> ItemResult | MeasurementFailure:
    """Measure one setup, or the controls at one limit."""
    try:
        return _worker.measure(_worker.open_session(terms, namespace, key), item)
    except Exception as error:  # noqa: BLE001 - its row says it, and the others go on
        why = str(error) if isinstance(error, CutbankError) else describe_error(error)
        cause = error.__cause__ if isinstance(error, PolicyFailedError) else error
        if isinstance(cause, MemoryError):
            return MeasurementFailure(CellOutcome.DIED, f"it ran out of memory ({why})")
        return MeasurementFailure(CellOutcome.FAILED, why)


def _exit_with_parent() -> None:
    """Exit when the parent process ends, even inside a policy's loop."""
    parent = parent_process()
    assert parent is not None, "a worker is started by a pool"
    parent.join()
    os._exit(1)

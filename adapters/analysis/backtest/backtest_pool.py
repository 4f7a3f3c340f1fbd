"""Measures sessions in several processes; a cell that ends one or hangs costs one row."""

import gc
import logging
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessPool

from ....domain.backtest.cell import CellOutcome
from ....domain.errors import BacktestError, CutbankError, PolicyFailedError
from ....domain.models import ModelFacts
from ...runtime.sessions.session_store import SessionStore, open_store
from ...storage.event_log.storage_errors import translate_storage_errors
from .cells import BenchTerms, CellBench, ItemResult, TaskItem
from .session_log import MeasuredSession, SessionRead, describe_log

DEFAULT_TIMEOUT_S = 300.0
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""


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


@dataclass(frozen=True)
class SessionTask:
    """One session, and the items to measure."""

    name: str
    """The displayed name of the session."""
    location: SessionLocation
    items: Mapping[int, TaskItem]
    """Items by number in the whole backtest."""


class ItemOrder(NamedTuple):
    """The numbers of the items to measure, with the facts of their models."""

    items: Sequence[tuple[int, ModelFacts | None]]
    terms: BenchTerms


class ItemAnswer(NamedTuple):
    """The outcome of one item of one session."""

    session: str
    number: int
    result: ItemResult | MeasurementFailure


ChooseItems = Callable[[SessionTask, SessionRead], ItemOrder]
"""Chooses what to measure of a session, now that it is read."""


class _Step(NamedTuple):
    """What a process does now or next."""

    pool: ProcessPool
    task: SessionTask
    number: int | None = None
    """The item; None reads the session."""


def measure_tasks(
    tasks: Iterable[SessionTask],
    choose_items: ChooseItems,
    processes: int,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Generator[ItemAnswer]:
    """Yield the outcome of each item, in any order; always stop all processes at the end.

    Each process has one session at a time, so that it is read once. The longest tasks come first,
    so that the last one does not delay the end. Raises BacktestError if processes cannot be
    started.
    """
    todo = deque(tasks)
    steps: dict[Future[Any], _Step] = {}
    finished = SimpleQueue[Future[Any]]()

    def schedule(step: _Step, function: Callable[..., Any], *arguments: Any) -> None:
        arguments = (step.task.location, *arguments)
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
            answers: list[ItemAnswer] = []
            if number is not None:
                answers.append(ItemAnswer(task.name, number, result))
            elif isinstance(result, MeasurementFailure):
                answers += (ItemAnswer(task.name, each, result) for each in task.items)
            else:
                order = choose_items(task, result)
                terms = pickle.dumps(order.terms)  # once: a session may have many items
                for each, facts in order.items:
                    schedule(_Step(pool, task, each), measure_item, task.items[each], facts, terms)
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

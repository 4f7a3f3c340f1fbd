"""Measures sessions in several processes; a cell that ends one or hangs costs one row."""

import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from queue import SimpleQueue
from typing import Any, NamedTuple

from pebble import ProcessExpired, ProcessPool

from ....domain.backtest.cell import CellOutcome
from ....domain.errors import BacktestError
from ....domain.models import ModelFacts
from .cells import BenchTerms, ItemResult, TaskItem
from .session_log import SessionRead
from .worker import (
    MeasurementFailure,
    SessionLocation,
    describe_error,
    measure_item,
    read_session,
    start_worker,
)

DEFAULT_TIMEOUT_S = 300.0
_SPAWN = get_context("spawn")
"""A fork would share the connections to the database."""


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

    items: Iterable[tuple[int, ModelFacts | None]]
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
    number: int | None
    """The item; None reads the session."""
    is_last: bool


@dataclass
class BacktestPool:
    """The processes of one backtest, each with one session at a time, so that it is read once."""

    tasks: Iterable[SessionTask]
    """The longest tasks come first, so that the last one does not delay the end."""
    choose_items: ChooseItems
    processes: int
    timeout_s: float = DEFAULT_TIMEOUT_S

    def measure_all(self) -> Generator[ItemAnswer]:
        """Yield the outcome of each item, in any order; always stop all processes at the end.

        Raises BacktestError if processes cannot be started.
        """
        self._todo = deque(self.tasks)
        self._steps: dict[Future[Any], _Step] = {}
        self._finished = SimpleQueue[Future[Any]]()
        pools = [start_pool() for _ in range(min(self.processes, len(self._todo)))]
        try:
            for pool in pools:
                self._begin_task(pool)
            while self._steps:
                future = self._finished.get()
                yield from self._handle(
                    self._steps.pop(future), _get_result(future, self.timeout_s)
                )
        finally:
            for pool in pools:
                pool.stop()  # type: ignore[no-untyped-call]
            for pool in pools:
                pool.join()

    def _begin_task(self, pool: ProcessPool) -> None:
        if self._todo:
            task = self._todo.popleft()
            self._schedule(_Step(pool, task, None, is_last=False), read_session)

    def _schedule(self, step: _Step, function: Callable[..., Any], *arguments: Any) -> None:
        arguments = (step.task.location, *arguments)
        future = step.pool.schedule(function, arguments, timeout=self.timeout_s)
        self._steps[future] = step
        future.add_done_callback(self._finished.put)

    def _handle(self, step: _Step, result: Any) -> Generator[ItemAnswer]:
        task, pool = step.task, step.pool
        if step.number is not None:
            if step.is_last:
                self._begin_task(pool)
            yield ItemAnswer(task.name, step.number, result)
            return
        if isinstance(result, MeasurementFailure):
            yield from (ItemAnswer(task.name, number, result) for number in task.items)
            self._begin_task(pool)
            return
        order = self.choose_items(task, result)
        items = list(order.items)
        terms = pickle.dumps(order.terms)  # once: a session may have many items
        for place, (number, facts) in enumerate(items, start=1):
            next_step = _Step(pool, task, number, is_last=place == len(items))
            self._schedule(next_step, measure_item, task.items[number], facts, terms)
        if not items:
            self._begin_task(pool)


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

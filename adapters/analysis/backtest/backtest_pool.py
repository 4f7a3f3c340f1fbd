"""Measures sessions in several processes; a cell that ends one or hangs costs one row."""

import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
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

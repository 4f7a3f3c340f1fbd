"""Runs a worker process of a backtest, which reads one session after another and measures it.

Orders and answers are pickled objects over a connection from the parent process. The worker stops
when the connection ends; an unfinished item is measured again later.
"""

import gc
import logging
import os
import sys
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from threading import Thread

from ....domain.backtest.cell import CellOutcome, Setup
from ....domain.errors import CutbankError, PolicyFailedError
from ....domain.models import ModelFacts
from ...runtime.sessions.session_store import SessionStore, open_store
from .cells import CellBench
from .session_log import MeasuredSession, describe_log
from .worker_messages import (
    ItemAnswer,
    ItemOrder,
    SessionLocation,
    SessionTask,
    answer_all,
    describe_error,
)

COLLECT_AFTER_BLOCKS = 100_000
"""New objects that trigger a search for cycles."""


def main() -> None:
    """Work until the connection ends."""
    connection = Connection(int(sys.argv[1]))
    # Measurements hold many objects that the collector would walk in vain.
    gc.set_threshold(COLLECT_AFTER_BLOCKS)
    # A policy's output must not mix with the program's.
    os.dup2(2, 1)
    Thread(target=_exit_with_leader, args=(int(sys.argv[2]),), daemon=True).start()
    logging.getLogger("cutbank.storage").disabled = True  # its parent has logged it
    leftovers = GarbageCollector()
    # When the parent is gone or needs no more, the connection ends.
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            leftovers.note_session(_run_task(connection.recv(), connection))


class GarbageCollector:
    """A collector that runs once the finished sessions may have left as much garbage as the largest
    of them: this bounds the garbage and keeps collections rare, since each walks all objects.
    """

    def __init__(self) -> None:
        self._largest = self._left = 0

    def note_session(self, blocks: int) -> None:
        """Record that a session of so many blocks is finished."""
        self._largest = max(self._largest, blocks)
        self._left += blocks
        if self._left >= self._largest:
            gc.collect()
            self._left = 0


def _run_task(task: SessionTask, connection: Connection) -> int:
    """Measure what is asked for of one session, and return its blocks."""
    try:
        log = _read_log(task)
        read = describe_log(log)
    except Exception as error:  # noqa: BLE001 - one session that cannot be read stops no other
        connection.send([*answer_all(task, f"it cannot be read: {describe_error(error)}")])
        return 0
    gc.freeze()  # the session stays until all is measured, so the collector skips it
    connection.send(read)
    order: ItemOrder = connection.recv()
    bench = CellBench(log, order.settings, order.facts)
    for number, facts in order.items:
        connection.send([_measure_item(bench, task, number, facts)])
    gc.unfreeze()
    return read.blank_cell.blocks


def _measure_item(
    bench: CellBench, task: SessionTask, number: int, facts: ModelFacts | None
) -> ItemAnswer:
    item, outcome = task.items[number], CellOutcome.FAILED
    try:
        if isinstance(item, Setup):
            return ItemAnswer(task.name, number, bench.measure_cell(item, facts))
        return ItemAnswer(task.name, number, bench.measure_controls(item.limit, item.budgets))
    except Exception as error:  # noqa: BLE001 - its row says it, and the others go on
        why = str(error) if isinstance(error, CutbankError) else describe_error(error)
        cause = error.__cause__ if isinstance(error, PolicyFailedError) else error
        if isinstance(cause, MemoryError):
            outcome, why = CellOutcome.DIED, f"it ran out of memory ({why})"
        return ItemAnswer(task.name, number, None, outcome, why)


def _read_log(task: SessionTask) -> MeasuredSession:
    source = task.source
    if isinstance(source, SessionLocation):
        return MeasuredSession.find(_open_store(source.address), source)
    return MeasuredSession.unpack(source)


@cache
def _open_store(address: str) -> SessionStore:
    """Open a database until the process ends."""
    return open_store(address)


def _exit_with_leader(leader: int) -> None:
    """Exit when the parent process ends, even inside a policy's loop."""
    with open(leader, "rb", buffering=0) as pipe:
        pipe.read()
    os._exit(1)

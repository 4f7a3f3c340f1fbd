"""Runs a worker process of a backtest, which reads one session after another and measures it.

Orders and answers are pickled objects over a connection from the parent process. The worker stops
when the connection ends; an unfinished item is measured again later.
"""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from ....domain.backtest.cell import Setup
from ....domain.errors import CutbankError, PolicyFailedError
from ...runtime.sessions.session_store import SessionStore, open_store
from ...storage.event_log.storage_errors import translate_storage_errors
from .cells import CellBench
from .session_log import MeasuredSession, describe_log
from .worker_messages import (
    ItemDone,
    ItemFailed,
    ItemOrder,
    ItemResult,
    ItemStarted,
    SessionLocation,
    SessionRead,
    SessionTask,
    SessionUnreadable,
    TaskFinished,
    TaskItem,
    WorkerReady,
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
    stores: dict[str, SessionStore] = {}
    leftovers = GarbageCollector()
    try:
        connection.send(WorkerReady())
        while True:
            task: SessionTask = connection.recv()
            blocks = 0
            for said in _run_task(task, connection, stores):
                connection.send(said)
                if isinstance(said, SessionRead):
                    blocks = said.blank_cell.blocks
            leftovers.note_session(blocks)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # the parent is gone, or needs no more
    finally:
        for store in stores.values():
            store.close()


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


def _run_task(
    task: SessionTask, connection: Connection, stores: dict[str, SessionStore]
) -> Iterator[Any]:
    try:
        log = _read_log(task, stores)
        read = describe_log(log)
    except Exception as error:  # noqa: BLE001 - one session that cannot be read stops no other
        yield SessionUnreadable(describe_error(error))
        return
    gc.freeze()  # the session stays until all is measured, so the collector skips it
    yield read
    order: ItemOrder = connection.recv()
    bench = CellBench(log, order.settings, order.facts)
    for number, facts in order.items:
        yield ItemStarted(number)
        yield _measure_item(bench, number, task.items[number], facts)
    gc.unfreeze()
    yield TaskFinished()


def _measure_item(
    bench: CellBench, number: int, item: TaskItem, facts: Any
) -> ItemDone | ItemFailed:
    try:
        result: ItemResult = (
            bench.measure_cell(item, facts)
            if isinstance(item, Setup)
            else bench.measure_controls(item.limit, item.budgets)
        )
    except Exception as error:  # noqa: BLE001 - its row says it, and the others go on
        if isinstance(error, PolicyFailedError):
            return ItemFailed(number, str(error), isinstance(error.__cause__, MemoryError))
        why = str(error) if isinstance(error, CutbankError) else describe_error(error)
        return ItemFailed(number, why, isinstance(error, MemoryError))
    return ItemDone(number, result)


def _read_log(task: SessionTask, stores: dict[str, SessionStore]) -> MeasuredSession:
    source = task.source
    if not isinstance(source, SessionLocation):
        return MeasuredSession.unpack(source)
    if source.address not in stores:
        logging.getLogger("cutbank.storage").disabled = True  # its parent has logged it
        stores[source.address] = open_store(source.address)
    store = stores[source.address]
    with translate_storage_errors(store.name):
        return MeasuredSession.read(
            store.session(source.key, namespace=source.namespace, create=False)
        )


def _exit_with_leader(leader: int) -> None:
    """Exit when the parent process ends, even inside a policy's loop."""
    with open(leader, "rb", buffering=0) as pipe:
        pipe.read()
    os._exit(1)

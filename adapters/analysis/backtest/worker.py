"""A process of a backtest: reads one session after another, and measures what it is told to.

Orders and answers are pickled objects, over a connection that whoever started the process hands
it. Its end says to stop; what is measured then is lost, and measured again another time.
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
from ...storage.event_log.plain_errors import speaking_plainly
from .cells import Bench
from .errands import (
    Begun,
    Done,
    Errand,
    Finished,
    Item,
    Order,
    Place,
    Read,
    Ready,
    Result,
    Unmeasured,
    Unread,
    said_of,
)
from .session_log import SessionLog, read_of

COLLECT_AFTER = 100_000
"""Objects that come before the collector looks for cycles."""


def main() -> None:
    """Work until the connection ends."""
    connection = Connection(int(sys.argv[1]))
    # What measures holds much that the collector walks for nothing.
    gc.set_threshold(COLLECT_AFTER)
    # What a policy prints is no answer of the program's.
    os.dup2(2, 1)
    Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    stores: dict[str, SessionStore] = {}
    leftovers = Leftovers()
    try:
        connection.send(Ready())
        while True:
            errand: Errand = connection.recv()
            blocks = 0
            for said in _run(errand, connection, stores):
                connection.send(said)
                if isinstance(said, Read):
                    blocks = said.blank.blocks
            leftovers.after(blocks)
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # whoever led is gone, or wants no more
    finally:
        for store in stores.values():
            store.close()


class Leftovers:
    """Has the collector look for what sessions left in cycles, whenever that may be as much as the
    largest of them: so no more is ever left, and the looks are few, which walk all that lives."""

    def __init__(self) -> None:
        self._largest = self._left = 0

    def after(self, blocks: int) -> None:
        """A session of so many blocks is done with."""
        self._largest = max(self._largest, blocks)
        self._left += blocks
        if self._left >= self._largest:
            gc.collect()
            self._left = 0


def _run(errand: Errand, connection: Connection, stores: dict[str, SessionStore]) -> Iterator[Any]:
    try:
        log = _log(errand, stores)
        read = read_of(log)
    except Exception as error:  # noqa: BLE001 - one session that cannot be read stops no other
        yield Unread(said_of(error))
        return
    gc.freeze()  # the session stays until all is measured, and is not walked
    yield read
    order: Order = connection.recv()
    bench = Bench(log, order.settings, order.facts)
    for number, facts in order.items:
        yield Begun(number)
        yield _measured(bench, number, errand.items[number], facts)
    gc.unfreeze()
    yield Finished()


def _measured(bench: Bench, number: int, item: Item, facts: Any) -> Done | Unmeasured:
    try:
        result: Result = (
            bench.cell(item, facts)
            if isinstance(item, Setup)
            else bench.controls(item.limit, item.budgets)
        )
    except Exception as error:  # noqa: BLE001 - its row says it, and the others go on
        if isinstance(error, PolicyFailedError):
            return Unmeasured(number, str(error), isinstance(error.__cause__, MemoryError))
        why = str(error) if isinstance(error, CutbankError) else said_of(error)
        return Unmeasured(number, why, isinstance(error, MemoryError))
    return Done(number, result)


def _log(errand: Errand, stores: dict[str, SessionStore]) -> SessionLog:
    source = errand.source
    if not isinstance(source, Place):
        return SessionLog.unpacked(source)
    if source.address not in stores:
        logging.getLogger("cutbank.storage").disabled = True  # its parent has said it
        stores[source.address] = open_store(source.address)
    store = stores[source.address]
    with speaking_plainly(store.name):
        return SessionLog.of(store.session(source.key, namespace=source.namespace, create=False))


def _end_with(leader: int) -> None:
    """End when whoever started this process ends, even in the middle of a policy's loop."""
    with open(leader, "rb", buffering=0) as pipe:
        pipe.read()
    os._exit(1)

"""Measures sessions on a Dask cluster whose workers do not need the database."""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....domain.backtest.cell import CellOutcome
from ....domain.errors import BacktestError
from ...runtime.sessions.session_store import SessionStore
from .backtest_pool import BacktestPool, BacktestWorker
from .fingerprint import hash_measuring_code
from .session_log import MeasuredSession, describe_log
from .worker_messages import (
    ChooseItems,
    ItemAnswer,
    ItemOrder,
    SessionLocation,
    SessionRead,
    SessionTask,
    answer_all,
    describe_error,
)

ADDRESS = re.compile(r"[a-z]+://.+:\d+/?")
CONNECT_S = 10.0
_MAX_TASKS_IN_FLIGHT = 2
"""Sessions sent to each thread of the cluster: the current one and the next."""
_MAX_TASK_BYTES = 512_000_000
"""Bytes of the largest packed session that is sent."""
_IDLE_WORKERS: list[BacktestWorker] = []
"""Idle processes of a worker; they end when it ends."""


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that receives each session with its task.

    A worker measures it in a separate process, so that a policy that loops or uses all memory costs
    one row there as well. If a worker is killed, others repeat its task.
    """

    address: str
    store: SessionStore
    tasks: Iterable[SessionTask]
    choose_items: ChooseItems
    timeout_s: float

    def measure_all(self) -> Generator[ItemAnswer]:
        """Yield the outcome of each item, in any order.

        Raises BacktestError, in one line, if the extra is missing, the cluster cannot be reached or
        disconnects, or its workers run other code.
        """
        try:
            import distributed  # noqa: PLC0415 - the extra `cluster`
        except ImportError:
            raise BacktestError("--cluster needs Dask: pip install 'cutbank[cluster]'") from None
        dask: Any = distributed  # Dask is mostly untyped
        if ADDRESS.fullmatch(self.address) is None:
            # A partly constructed client would complain when it is collected.
            raise BacktestError(
                f"the cluster {self.address} cannot be reached: its address is as tcp://HOST:8786"
            )
        try:
            client = dask.Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise BacktestError(f"the cluster {self.address} cannot be reached: {error}") from None
        try:
            self._check(client)
            ahead = _MAX_TASKS_IN_FLIGHT * sum(client.nthreads().values())
            packed, flying = self._pack_tasks(), dict[Any, tuple[SessionTask, ItemOrder]]()
            landing = dask.as_completed(loop=client.loop)
            while True:
                while len(flying) < ahead and (one := next(packed, None)) is not None:
                    if isinstance(one, ItemAnswer):
                        yield one
                        continue
                    task, order = one
                    future = client.submit(measure_task, task, order, self.timeout_s, pure=False)
                    flying[future.key] = replace(task, source=b""), order
                    landing.add(future)
                if not flying:
                    return
                future = next(landing)
                yield from self._read_future(future, *flying.pop(future.key))
        finally:
            client.close()

    def _check(self, client: Any) -> None:
        """Check that the workers run the same code: another version would give other results."""
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError:
            raise BacktestError(f"the cluster {self.address} has no workers") from None
        workers = client.run(hash_measuring_code)
        if other := [name for name, code in workers.items() if code != hash_measuring_code()]:
            raise BacktestError(
                f"{len(other)} workers of the cluster {self.address} have another cutbank than"
                f" this one, {other[0]} for one: install the same"
            )

    def _pack_tasks(self) -> Iterator[tuple[SessionTask, ItemOrder] | ItemAnswer]:
        """Yield each session of which items are missing, packed with its task."""
        for task in self.tasks:
            place = task.source
            assert isinstance(place, SessionLocation), "a packed log is read where it was packed"
            try:
                log = MeasuredSession.find(self.store, place)
            except Exception as error:  # noqa: BLE001 - one unreadable session must not stop the others
                yield from answer_all(task, f"it cannot be read: {describe_error(error)}")
                continue
            order = self.choose_items(task, describe_log(log))
            if not order.items:
                continue
            packed = log.pack()
            if len(packed) <= _MAX_TASK_BYTES:
                yield replace(task, source=packed), order
            else:
                why = (
                    f"packed it has {len(packed):,} bytes, and {_MAX_TASK_BYTES:,} are sent at most"
                )
                yield from answer_all(task, why)

    def _read_future(
        self, future: Any, task: SessionTask, order: ItemOrder
    ) -> Iterator[ItemAnswer]:
        if future.status == "finished":
            yield from future.result()
            return
        if future.status != "error":
            raise BacktestError(f"the cluster {self.address} went away: begin again to go on")
        error = future.exception()
        for number, _ in order.items:
            why = f"the cluster gave it up: {describe_error(error)}"
            yield ItemAnswer(task.name, number, None, CellOutcome.DIED, why)


def measure_task(task: SessionTask, order: ItemOrder, timeout_s: float) -> Sequence[ItemAnswer]:
    """Measure one session in a separate process, on a worker of the cluster."""

    def ask(task: SessionTask, _: SessionRead) -> ItemOrder:
        return replace(order, items=tuple(one for one in order.items if one[0] in task.items))

    pool = BacktestPool([task], ask, 1, timeout_s, _IDLE_WORKERS)
    return list(pool.measure_all())

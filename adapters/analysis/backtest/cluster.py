"""Measures sessions on a Dask cluster, whose workers need not have the database."""

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....domain.backtest.cell import Outcome
from ....domain.errors import BacktestError
from ...runtime.sessions.session_store import SessionStore
from ...storage.event_log.plain_errors import speaking_plainly
from .crew import Crew, Hand
from .errands import Answer, Ask, Errand, Order, Place, Read, of_all, said_of
from .fingerprint import measuring_code
from .session_log import SessionLog, read_of

ADDRESS = re.compile(r"[a-z]+://.+:\d+/?")
CONNECT_S = 10.0
AHEAD = 2
"""Sessions that are sent for each thread of the cluster: one in hand, and the next."""
LARGEST = 512_000_000
"""Bytes of a session, packed, that are sent at most."""
_SPARE: list[Hand] = []
"""Of a worker: processes that wait for its next session. They end when it ends."""


@dataclass(frozen=True)
class Cluster:
    """Sends each session along with what is wanted of it.

    A worker has a process of its own measure it, so that a policy that loops or takes all memory
    costs one row there as well. What a worker had in hand that is killed, others do again.
    """

    address: str
    store: SessionStore
    errands: Iterable[Errand]
    ask: Ask
    timeout_s: float

    def answers(self) -> Generator[Answer]:
        """What became of each item, in whatever order.

        Raises BacktestError, in one line, where the extra is missing, the cluster cannot be
        reached or goes away, or its workers run other code.
        """
        try:
            import distributed  # noqa: PLC0415 - the extra `cluster`
        except ImportError:
            raise BacktestError("--cluster needs Dask: pip install 'cutbank[cluster]'") from None
        dask: Any = distributed  # most of it has no types
        if ADDRESS.fullmatch(self.address) is None:
            # A client that was made of it in part would complain when it is collected.
            raise BacktestError(
                f"the cluster {self.address} cannot be reached: its address is as tcp://HOST:8786"
            )
        try:
            client = dask.Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise BacktestError(f"the cluster {self.address} cannot be reached: {error}") from None
        try:
            self._check(client)
            ahead = AHEAD * sum(client.nthreads().values())
            packed, flying = self._packed(), dict[Any, tuple[Errand, Order]]()
            landing = dask.as_completed(loop=client.loop)
            while True:
                while len(flying) < ahead and (one := next(packed, None)) is not None:
                    if isinstance(one, Answer):
                        yield one
                        continue
                    errand, order = one
                    future = client.submit(measure, errand, order, self.timeout_s, pure=False)
                    flying[future.key] = replace(errand, source=b""), order
                    landing.add(future)
                if not flying:
                    return
                future = next(landing)
                yield from self._landed(future, *flying.pop(future.key))
        finally:
            client.close()

    def _check(self, client: Any) -> None:
        """Another version of this program would measure something else."""
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError:
            raise BacktestError(f"the cluster {self.address} has no workers") from None
        workers = client.run(measuring_code)
        if other := [name for name, code in workers.items() if code != measuring_code()]:
            raise BacktestError(
                f"{len(other)} workers of the cluster {self.address} have another cutbank than"
                f" this one, {other[0]} for one: install the same"
            )

    def _packed(self) -> Iterator[tuple[Errand, Order] | Answer]:
        """One session after another of which anything is to be measured, with all that it takes."""
        for errand in self.errands:
            try:
                log = self._log(errand)
            except Exception as error:  # noqa: BLE001 - one that cannot be read stops no other
                yield from of_all(errand, Outcome.FAILED, f"it cannot be read: {said_of(error)}")
                continue
            order = self.ask(errand, read_of(log))
            if not order.items:
                continue
            packed = log.packed()
            if len(packed) <= LARGEST:
                yield replace(errand, source=packed), order
            else:
                why = f"packed it has {len(packed):,} bytes, and {LARGEST:,} are sent at most"
                yield from of_all(errand, Outcome.FAILED, why)

    def _log(self, errand: Errand) -> SessionLog:
        place = errand.source
        assert isinstance(place, Place), "what is packed is packed here"
        with speaking_plainly(self.store.name):
            session = self.store.session(place.key, namespace=place.namespace, create=False)
            return SessionLog.of(session)

    def _landed(self, future: Any, errand: Errand, order: Order) -> Iterator[Answer]:
        if future.status == "finished":
            yield from future.result()
            return
        if future.status != "error":
            raise BacktestError(f"the cluster {self.address} went away: begin again to go on")
        error = future.exception()
        for number, _ in order.items:
            why = f"the cluster gave it up: {said_of(error)}"
            yield Answer(errand.name, number, None, Outcome.DIED, why)


def measure(errand: Errand, order: Order, timeout_s: float) -> Sequence[Answer]:
    """What a worker of the cluster does: has one session measured, in a process of its own."""

    def ask(errand: Errand, _: Read) -> Order:
        return replace(order, items=tuple(one for one in order.items if one[0] in errand.items))

    return list(Crew([errand], ask, 1, timeout_s, _SPARE).answers())

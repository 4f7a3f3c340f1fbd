"""Runs a worker in a foreground process: until it is stopped, or until nothing is due."""

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import Any, Final

from ....domain.errors import StorageError
from ...storage.private_files import make_file, open_new
from ..maintenance.maintenance import Maintenance
from ..sessions.session_store import SessionStore
from .idle_scheduler import IdleScheduler, start_scheduler
from .idle_worker import IdleWorker
from .notices import NoticeCounts, NoticeListener, WorkerRun, logger

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOOK_INTERVAL_S = 60.0
"""The longest time between two looks of a single run while summaries are written."""
_MAINTENANCE_PAUSE_S = 0.2


class StopSignals:
    """Waits for a signal to stop; a second signal exits the process at once, and loses nothing."""

    def __init__(self) -> None:
        # Signals arrive at any moment, and SimpleQueue is the queue whose `put` is reentrant.
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._is_stopping = False

    def wait(self, timeout: float) -> bool:
        """Wait for a signal, or for `wake`; return whether it is a signal."""
        try:
            return self._queue.get(timeout=timeout) is not None
        except Empty:
            return False

    def wake(self) -> None:
        """Wake the waiting thread; callable from any thread."""
        self._queue.put(None)

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Receive the signals to stop; restore the old handlers afterwards."""
        before = {number: signal.signal(number, self._receive) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._is_stopping:
            os._exit(128 + number)
        self._is_stopping = True
        self._queue.put(number)


BEAT_INTERVAL_S = 2.0
"""How often the worker's health is checked, on the monotonic clock."""
STUCK_AFTER_S = 120.0
"""How long without progress before a worker counts as stuck."""


class Health:
    """Reports the state of a worker as long as it makes progress, which may be slow.

    The health file exists while its worker runs, and is replaced atomically.
    """

    def __init__(
        self, path: Path | None, database: str, clock: Callable[[], float] = monotonic
    ) -> None:
        """Raises StorageError if the file cannot be written."""
        self.path = path
        self._known = {"pid": os.getpid(), "database": database, "started_at": _format_now()}
        self._clock = clock
        self._seen: object = None
        self._since = clock()
        if path is not None:
            self._next = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                make_file(self._next)
            except OSError as error:
                raise StorageError(
                    f"{path} cannot be written ({error.strerror}): name another health file"
                ) from None

    def beat(self, progress: object, state: dict[str, Any]) -> bool:
        """Report the state unless the worker is stuck; return whether it is well.

        `progress` is another value after each progress.
        """
        now = self._clock()
        if progress != self._seen:
            self._seen, self._since = progress, now
        still = now - self._since
        if still > STUCK_AFTER_S:
            return False
        if self.path is not None:
            document = {**self._known, "at": _format_now(), "still_s": round(still, 1), **state}
            with suppress(OSError):  # on a full disk the old file stays
                self._next.unlink(missing_ok=True)
                with open_new(self._next) as file:
                    file.write(json.dumps(document).encode() + b"\n")
                self._next.replace(self.path)
        notify_service_manager("WATCHDOG=1")
        return True

    def end(self) -> None:
        """Remove the file, as a worker does on a normal end."""
        for path in (self._next, self.path) if self.path else ():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def notify_service_manager(message: str) -> None:
    """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1` to systemd, if it listens: see sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # `@` marks an abstract socket, whose name begins with a null byte.
    name = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto(message.encode(), name)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def run_until_stopped(
    store: SessionStore,
    *,
    listeners: Sequence[NoticeListener] = (),
    health: Path | None = None,
    grace_s: float = 30.0,
) -> WorkerRun:
    """Run the store's scheduler until a signal ends it.

    Then cancel what runs, and wait for it for the grace time.
    """
    counts, signals = NoticeCounts(), StopSignals()
    with signals.listen():
        report = Health(health, store.name)
        scheduler = start_scheduler(store, listeners=[counts, *listeners])
        is_ready, is_well = False, True
        try:
            while not signals.wait(BEAT_INTERVAL_S if is_ready else BEAT_INTERVAL_S / 10):
                if not is_ready and scheduler.looks:
                    notify_service_manager("READY=1")
                    is_ready = True
                was_well = is_well
                progress = (scheduler.looks, _find_position(store))
                is_well = report.beat(progress, _describe_state(scheduler, counts))
                if was_well and not is_well:
                    logger.error("the worker is stuck: it has not looked for a long time")
        finally:
            # Also after an unforeseen error.
            notify_service_manager("STOPPING=1")
            scheduler.stop(grace_s)
            report.end()
    return counts.make_run(scheduler.worker.name, len(scheduler.worker.running_attempts))


def _find_position(store: SessionStore) -> int | None:
    """Return how far the index has come, which the first look at a long log takes long for."""
    try:
        return store.read_models.positions["index"]
    except StorageError:
        return None


def _describe_state(scheduler: IdleScheduler, counts: NoticeCounts) -> dict[str, Any]:
    running = scheduler.worker.running_attempts
    times = {
        "looked_at": scheduler.looked_at,
        "next_look": scheduler.next_look,
        "oldest_began": min((one.began for one in running), default=None),
    }
    return {
        "worker": scheduler.worker.name,
        **{name: at and at.isoformat(timespec="milliseconds") for name, at in times.items()},
        "due": counts.due,
        "running": len(running),
        **counts.counts,
        "trouble": counts.trouble,
    }


def run_once(
    store: SessionStore, *, listeners: Sequence[NoticeListener] = (), grace_s: float = 30.0
) -> WorkerRun:
    """Look again after each result until nothing is left to do.

    When a signal stops it, cancel what runs and wait for it for the grace time.
    """
    counts, signals = NoticeCounts(), StopSignals()
    worker = IdleWorker(store, listeners=[counts, *listeners], maintenance=Maintenance(store))
    worker.on_free = signals.wake
    with signals.listen():
        is_whole = False
        try:
            is_whole = _run_due(worker, signals)
        finally:
            worker.stop(grace_s)
    if not is_whole:
        counts.trouble = counts.trouble or "it was told to stop"
    return counts.make_run(worker.name, len(worker.running_attempts))


def _run_due(worker: IdleWorker, signals: StopSignals) -> bool:
    """Do what is due; return False if a signal interrupted it."""
    begun = -1
    while worker.running_attempts or worker.begun > begun:
        begun = worker.begun
        worker.look()
        if worker.running_attempts and signals.wait(_LOOK_INTERVAL_S):
            return False
    while not worker.wait(_MAINTENANCE_PAUSE_S):
        if signals.wait(0):
            return False
    return True

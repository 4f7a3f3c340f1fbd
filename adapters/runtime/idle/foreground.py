"""Runs a worker in a foreground process: until it is stopped, or until nothing is due."""

import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from types import FrameType
from typing import Any, Final, Self

from ....domain.errors import StorageError
from ...storage.private_files import make_file, open_new
from ..sessions.session_store import SessionStore
from .idle_scheduler import start_scheduler
from .idle_worker import IdleWorker
from .notices import NoticeListener, logger

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Receives signals to stop, in a context; a second one exits the process and loses nothing."""

    def __init__(self) -> None:
        # Signals arrive at any moment, and SimpleQueue is the queue whose `put` is reentrant.
        self._queue: SimpleQueue[None] = SimpleQueue()
        self.stopped = Event()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._receive) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, timeout: float) -> bool:
        """Wait for a signal, or for `wake`; return whether there was a signal."""
        with suppress(Empty):
            self._queue.get(timeout=timeout)
        return self.stopped.is_set()

    def wake(self) -> None:
        """Wake the waiting thread; callable from any thread."""
        self._queue.put(None)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.stopped.is_set():
            os._exit(128 + number)
        self.stopped.set()
        self.wake()


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
        notify_service_manager("READY=1\nWATCHDOG=1" if state["looked_at"] else "WATCHDOG=1")
        return True

    def end(self) -> None:
        """Remove the file, as a worker does on a normal end."""
        for path in (self._next, self.path) if self.path else ():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def notify_service_manager(message: str) -> None:
    """Send lines such as `READY=1` to systemd, if it listens: see sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    # `@` marks an abstract socket, whose name begins with a null byte.
    name = "\0" + address[1:] if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto(message.encode(), name)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def run_worker(
    store: SessionStore,
    *,
    once: bool = False,
    listeners: Sequence[NoticeListener] = (),
    health: Path | None = None,
    grace_s: float = 30.0,
) -> IdleWorker:
    """Run the store's scheduler until a signal ends it, or with `once` until nothing is to do.

    Then cancel what runs, and wait for it for the grace time. Returns the worker, which is stopped.
    """
    with StopSignals() as signals:
        report = Health(health, store.name)
        scheduler = start_scheduler(store, listeners=listeners)
        scheduler.on_look = signals.wake
        worker, is_well = scheduler.worker, True
        try:
            while not (is_told := signals.wait(BEAT_INTERVAL_S)):
                if once and worker.is_finished:
                    break
                was_well = is_well
                is_well = report.beat(
                    (worker.looks, _find_position(store)), describe_worker(worker)
                )
                if was_well and not is_well:
                    logger.error("the worker is stuck: it has not looked for a long time")
        finally:
            # Also after an unforeseen error.
            notify_service_manager("STOPPING=1")
            scheduler.stop(grace_s)
            report.end()
    if once and is_told:
        worker.trouble = worker.trouble or "it was told to stop"
    return worker


def _find_position(store: SessionStore) -> int | None:
    """Return how far the index has come, which the first look at a long log takes long for."""
    try:
        return store.read_models.positions["index"]
    except StorageError:
        return None


def describe_worker(worker: IdleWorker) -> dict[str, Any]:
    running = worker.running_attempts
    times = {
        "looked_at": worker.looked_at,
        "next_look": worker.next_look,
        "oldest_began": min((one.began for one in running), default=None),
    }
    return {
        "worker": worker.name,
        **{name: at and at.isoformat(timespec="milliseconds") for name, at in times.items()},
        "due": worker.due_count,
        "running": len(running),
        **worker.counts,
        "trouble": worker.trouble,
    }

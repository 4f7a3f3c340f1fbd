"""Runs a worker in a foreground process: until it is stopped, or until nothing is due."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Final, NoReturn

from ..maintenance.maintenance import make_maintenance
from ..sessions.session_store import SessionStore
from .health import BEAT_INTERVAL_S, Health, notify_service_manager
from .idle_scheduler import IdleScheduler, start_scheduler
from .idle_worker import IdleWorker
from .notices import NoticeCounts, NoticeKind, NoticeListener, WorkerRun
from .worker_log import logger

STOP_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT})
RESTART_SIGNALS: Final = frozenset(one for one in signal.Signals if one.name == "SIGHUP")
"""The signals that have a worker start again, with its settings as they are then."""
_LOOK_INTERVAL_S = 60.0
"""The longest time between two looks of a single run while summaries are written."""
_MAINTENANCE_PAUSE_S = 0.2
MAX_PASSED_OVER = 3
"""How often one session may be passed over in a single run before it may end without it."""


class SignalQueue:
    """A queue of signals, in the order of their arrival.

    The first signal to stop is queued like others; the second exits the process immediately.
    Nothing stored is lost.
    """

    def __init__(self, before_exit: Callable[[], None] = lambda: None) -> None:
        # Signals arrive at any moment, and SimpleQueue is the queue whose `put` is reentrant.
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._before_exit = before_exit
        self._is_ending = False
        self._is_restarting = False

    @property
    def is_to_restart(self) -> bool:
        """Whether the process is to start again, and was not told to stop meanwhile."""
        return self._is_restarting and not self._is_ending

    def is_told_to_end(self, timeout: float) -> bool:
        """Wait for the next signal or `wake`; return whether it is a signal to stop or restart."""
        try:
            number = self._queue.get(timeout=max(timeout, 0))
        except Empty:
            return False
        self._is_restarting = number in RESTART_SIGNALS
        return number in STOP_SIGNALS | RESTART_SIGNALS

    def wake(self) -> None:
        """Wake the waiting thread; callable from any thread."""
        self._queue.put(None)

    @contextmanager
    def listen(self, *others: signal.Signals) -> Iterator[None]:
        """Receive the signals to stop and `others`; restore the old handlers afterwards."""
        wanted = {*STOP_SIGNALS, *others}
        before = {number: signal.signal(number, self._receive) for number in wanted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number in STOP_SIGNALS:
            if self._is_ending:
                self._before_exit()
                os._exit(128 + number)
            self._is_ending = True
        self._queue.put(number)


def run_until_stopped(
    store: SessionStore,
    *,
    listeners: Sequence[NoticeListener] = (),
    health: Path | None = None,
    grace_s: float = 30.0,
    parent: int | None = None,
) -> WorkerRun:
    """Run the store's scheduler until a signal ends it, or the process `parent` is gone.

    Then cancel what runs, and wait for it for the grace time.
    """
    counts, signals = NoticeCounts(), SignalQueue()
    with signals.listen(*RESTART_SIGNALS):
        report = Health(
            health,
            {"database": store.name},
            lambda: (scheduler.looks, store.read_models.positions["index"]),
        )
        scheduler = start_scheduler(store, listeners=[counts, *listeners])
        worker = scheduler.worker
        try:
            _beat_until_told_to_end(scheduler, counts, report, signals, parent)
        finally:
            # Also after an unforeseen error.
            notify_service_manager("STOPPING=1")
            has_ended = scheduler.stop(grace_s)
            report.end()
    left = 0 if has_ended else len(worker.running_attempts)
    return WorkerRun(worker.name, counts.counts, counts.trouble, left, signals.is_to_restart)


def _beat_until_told_to_end(
    scheduler: IdleScheduler,
    counts: NoticeCounts,
    health: Health,
    signals: SignalQueue,
    parent: int | None,
) -> None:
    is_ready, is_well = False, True
    while parent is None or os.getppid() == parent:
        if not is_ready and scheduler.looks:
            notify_service_manager("READY=1")
            is_ready = True
        was_well, is_well = is_well, health.beat(_describe_state(scheduler, counts))
        if was_well and not is_well:
            logger.error("the worker is stuck: it has not looked for a long time")
        if signals.is_told_to_end(BEAT_INTERVAL_S if is_ready else BEAT_INTERVAL_S / 10):
            return
    logger.warning("the process that started this worker has ended: it stops as well")


def _describe_state(scheduler: IdleScheduler, counts: NoticeCounts) -> dict[str, Any]:
    running = scheduler.worker.running_attempts
    return {
        "worker": scheduler.worker.name,
        "looked_at": _format_time(scheduler.looked_at),
        "next_look": _format_time(scheduler.next_look),
        "due": counts.due,
        "running": len(running),
        "oldest_began": _format_time(min((one.began for one in running), default=None)),
        **counts.counts,
        "trouble": counts.trouble,
    }


def _format_time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds") if at else None


def restart_program() -> NoReturn:
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - no shell needed


def run_once(
    store: SessionStore, *, listeners: Sequence[NoticeListener] = (), grace_s: float = 30.0
) -> WorkerRun:
    """Look again after each result until nothing is left to do.

    When a signal stops it, cancel what runs and wait for it for the grace time.
    """
    counts, signals = NoticeCounts(), SignalQueue()
    worker = IdleWorker(store, listeners=[counts, *listeners], maintenance=make_maintenance(store))
    worker.on_free = signals.wake
    with signals.listen():
        is_whole = False
        try:
            is_whole = _run_due(worker, counts, signals)
        finally:
            has_ended = worker.stop(grace_s)
    trouble = counts.trouble or (None if is_whole else "it was told to stop")
    left = 0 if has_ended else len(worker.running_attempts)
    return WorkerRun(worker.name, counts.counts, trouble, left)


def _run_due(worker: IdleWorker, counts: NoticeCounts, signals: SignalQueue) -> bool:
    """Do what is due; return False if a signal interrupted it."""
    while True:
        counts.newest_look = None
        worker.look()
        if worker.running_attempts:
            if signals.is_told_to_end(_LOOK_INTERVAL_S):
                return False
        elif not _is_work_left(counts):
            break
    while not worker.wait(_MAINTENANCE_PAUSE_S):
        if signals.is_told_to_end(0):
            return False
    return True


def _is_work_left(counts: NoticeCounts) -> bool:
    # Without an answer, or while all work has to wait, nothing can be done now.
    look = counts.newest_look
    if look is None or look.about is not NoticeKind.LOOKED or not look.due:
        return False
    return max(counts.passed_over.values(), default=0) < MAX_PASSED_OVER

"""Runs a worker once, until nothing is due."""

from collections import Counter
from collections.abc import Sequence

from ..sessions.session_store import SessionStore
from .idle_worker import IdleWorker
from .maintenance_runner import make_maintenance
from .notice_counts import NoticeCounts, WorkerRun
from .notices import NoticeKind, NoticeListener, WorkerNotice
from .stop_signals import STOP_SIGNALS, SignalQueue

_LOOK_INTERVAL_S = 60.0
"""The longest time between two looks while summaries are written."""
MAINTENANCE_PAUSE_S = 0.2
MAX_PASSED_OVER = 3
"""How often one session may be passed over in a run before the run may end without it."""


class SingleRun:
    """Looks again after each result until nothing is left to do."""

    def __init__(
        self,
        store: SessionStore,
        *,
        listeners: Sequence[NoticeListener] = (),
        grace_s: float = 30.0,
    ) -> None:
        self.tally = NoticeCounts()
        self.grace_s = grace_s
        self.orders = SignalQueue()
        notified: list[NoticeListener] = [self.tally, self._receive, *listeners]
        self.worker = IdleWorker(store, listeners=notified, maintenance=make_maintenance(store))
        self.worker.on_free = self.orders.wake
        self._found: WorkerNotice | None = None
        self._passed_over: Counter[tuple[str | None, str | None]] = Counter()

    def run(self) -> WorkerRun:
        """Do what is due; when stopped, cancel what runs and wait for it for the grace time."""
        with self.orders.listen():
            is_whole = False
            try:
                is_whole = self._run_due()
            finally:
                has_ended = self.worker.stop(self.grace_s)
        trouble = self.tally.trouble or (None if is_whole else "it was told to stop")
        left = 0 if has_ended else len(self.worker.running_attempts)
        return WorkerRun(self.worker.name, self.tally.counts, trouble, left)

    def _run_due(self) -> bool:
        """Do what is due; return False if a signal interrupted it."""
        while True:
            self._found = None
            self.worker.look()
            if not self.worker.running_attempts and self._is_over():
                return self._wait_for_maintenance()
            if (
                self.worker.running_attempts
                and self.orders.wait_next(_LOOK_INTERVAL_S) in STOP_SIGNALS
            ):
                return False

    def _is_over(self) -> bool:
        found = self._found
        # Without an answer, or while all work has to wait, nothing can be done now.
        if found is None or found.about is not NoticeKind.LOOKED or not found.due:
            return True
        return max(self._passed_over.values(), default=0) >= MAX_PASSED_OVER

    def _wait_for_maintenance(self) -> bool:
        """Wait for running maintenance; return whether it has ended."""
        while not self.worker.wait(MAINTENANCE_PAUSE_S):
            if self.orders.wait_next(0) in STOP_SIGNALS:
                return False
        return True

    def _receive(self, notice: WorkerNotice) -> None:
        match notice.about:
            case NoticeKind.LOOKED | NoticeKind.WAITING | NoticeKind.DATABASE_AWAY:
                self._found = notice
            case NoticeKind.PASSED_OVER:
                self._passed_over[notice.namespace, notice.session] += 1
            case _:
                pass

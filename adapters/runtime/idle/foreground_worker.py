"""Runs a worker in a foreground process until it is stopped, and reports its health."""

import os
import signal
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..sessions.session_store import SessionStore
from .health import BEAT_INTERVAL_S, Health, HealthFile, StallTimer
from .idle_scheduler import IdleScheduler, start_scheduler
from .notice_counts import NoticeCounts, WorkerRun
from .notices import NoticeListener
from .service_manager import notify_service_manager
from .stop_signals import STOP_SIGNALS, SignalQueue
from .worker_log import logger


class ForegroundWorker:
    """Runs the store's scheduler until a signal stops it, or its parent process is gone."""

    def __init__(
        self,
        store: SessionStore,
        *,
        listeners: Sequence[NoticeListener] = (),
        health: Path | None = None,
        grace_s: float = 30.0,
        parent: int | None = None,
    ) -> None:
        """`parent` is the process on whose end this one stops."""
        self.store = store
        self.tally = NoticeCounts()
        self.listeners: list[NoticeListener] = [self.tally, *listeners]
        self.file = HealthFile(health) if health else None
        self.grace_s = grace_s
        self.parent = parent
        self.orders = SignalQueue()

    def run(self) -> WorkerRun:
        """Work until stopped; then cancel what runs, and wait for it for the grace time."""
        with self.orders.listen(signal.SIGHUP):
            scheduler = start_scheduler(self.store, listeners=self.listeners)
            health = self._make_health(scheduler)
            try:
                self._wait(scheduler, health)
            finally:
                # Also after an unforeseen error.
                notify_service_manager("STOPPING=1")
                has_ended = scheduler.stop(self.grace_s)
                health.end()
        left = 0 if has_ended else len(scheduler.worker.running_attempts)
        return WorkerRun(scheduler.worker.name, self.tally.counts, self.tally.trouble, left)

    def _wait(self, scheduler: IdleScheduler, health: Health) -> None:
        is_ready, is_well = False, True
        while True:
            if not is_ready and scheduler.looks:
                notify_service_manager("READY=1")
                is_ready = True
            was_well, is_well = is_well, health.beat(self._health_document(scheduler))
            if was_well and not is_well:
                logger.error("the worker is stuck: it has not looked for a long time")
            match self.orders.wait_next(BEAT_INTERVAL_S if is_ready else BEAT_INTERVAL_S / 10):
                case signal.SIGHUP:
                    scheduler.worker.reload()
                case number if number in STOP_SIGNALS:
                    return
            if self.parent is not None and os.getppid() != self.parent:
                logger.warning("the process that started this worker has ended: it stops as well")
                return

    def _make_health(self, scheduler: IdleScheduler) -> Health:
        models = self.store.read_models
        known = {"worker": scheduler.worker.name, "database": self.store.name}
        stillness = StallTimer(lambda: (scheduler.looks, models.positions["index"]))
        return Health(self.file, known, stillness)

    def _health_document(self, scheduler: IdleScheduler) -> dict[str, Any]:
        running = scheduler.worker.running_attempts
        return {
            "looked_at": _format_time(scheduler.looked_at),
            "next_look": _format_time(scheduler.next_look),
            "due": self.tally.due,
            "running": len(running),
            "oldest_began": _format_time(min((one.began for one in running), default=None)),
            **self.tally.counts,
            "trouble": self.tally.trouble,
        }


def _format_time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds") if at else None

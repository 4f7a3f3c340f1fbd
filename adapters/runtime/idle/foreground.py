"""A worker that a process exists for: works until it is told to stop, and says how it does."""

import os
import signal
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..sessions.session_store import SessionStore
from .health import BEAT_S, Health, HealthFile, Stillness
from .notices import Heard
from .orders import STOPS, Orders
from .scheduler import IdleScheduler, start_scheduler
from .service_manager import tell_service_manager
from .tally import Ended, Tally
from .worker_log import logger


class Foreground:
    """Runs the store's scheduler until a signal says to stop, or whoever started it is gone."""

    def __init__(
        self,
        store: SessionStore,
        *,
        heard: Sequence[Heard] = (),
        health: Path | None = None,
        grace_s: float = 30.0,
        parent: int | None = None,
    ) -> None:
        """`parent` is the process that has to be there as long as this one."""
        self.store = store
        self.tally = Tally()
        self.heard: list[Heard] = [self.tally, *heard]
        self.file = HealthFile(health) if health else None
        self.grace_s = grace_s
        self.parent = parent
        self.orders = Orders()

    def work(self) -> Ended:
        """Work until told to stop; then cancel what runs, and wait for it for the grace time."""
        with self.orders.heard(signal.SIGHUP):
            scheduler = start_scheduler(self.store, heard=self.heard)
            health = self._health(scheduler)
            try:
                self._wait(scheduler, health)
            finally:
                # Also where something went wrong that nobody has foreseen.
                tell_service_manager("STOPPING=1")
                has_ended = scheduler.stop(self.grace_s)
                health.end()
        left = 0 if has_ended else len(scheduler.worker.running)
        return Ended(scheduler.worker.name, self.tally.counts, self.tally.trouble, left)

    def _wait(self, scheduler: IdleScheduler, health: Health) -> None:
        is_ready, is_well = False, True
        while True:
            if not is_ready and scheduler.looks:
                tell_service_manager("READY=1")
                is_ready = True
            was_well, is_well = is_well, health.beat(self._told(scheduler))
            if was_well and not is_well:
                logger.error("the worker is stuck: it has not looked for a long time")
            match self.orders.next(BEAT_S if is_ready else BEAT_S / 10):
                case signal.SIGHUP:
                    scheduler.worker.reload()
                case number if number in STOPS:
                    return
            if self.parent is not None and os.getppid() != self.parent:
                logger.warning("whoever started this worker is gone: it stops as well")
                return

    def _health(self, scheduler: IdleScheduler) -> Health:
        models = self.store.read_models
        known = {"worker": scheduler.worker.name, "database": self.store.name}
        stillness = Stillness(lambda: (scheduler.looks, models.positions["index"]))
        return Health(self.file, known, stillness)

    def _told(self, scheduler: IdleScheduler) -> dict[str, Any]:
        running = scheduler.worker.running
        return {
            "looked_at": _written(scheduler.looked_at),
            "next_look": _written(scheduler.next_look),
            "due": self.tally.due,
            "running": len(running),
            "oldest_began": _written(min((one.began for one in running), default=None)),
            **self.tally.counts,
            "trouble": self.tally.trouble,
        }


def _written(at: datetime | None) -> str | None:
    return at.isoformat(timespec="milliseconds") if at else None

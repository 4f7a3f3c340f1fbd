"""Runs a worker under APScheduler: one job looks for due sessions and schedules its next run."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from ....domain.errors import InvalidSettingError
from ....domain.idle_rules import IdleRules
from ..maintenance import Backups, Retention
from ..sessions.session_store import SessionStore
from .idle_worker import MAX_LOOK_INTERVAL, IdleWorker
from .notices import NoticeKind, NoticeListener

JOB_NAME = "look for due sessions"


class IdleScheduler:
    """Runs one worker in this process until it is stopped or its store is closed.

    What is due is derived from the log, not kept in APScheduler's store: a restart loses nothing,
    and any number of processes may run a scheduler.
    """

    def __init__(
        self,
        store: SessionStore,
        rules: IdleRules | None = None,
        *,
        name: str | None = None,
        listeners: Sequence[NoticeListener] = (),
    ) -> None:
        self.worker = IdleWorker(
            store,
            rules,
            name=name,
            listeners=listeners,
            backups=Backups(store),
            retention=Retention(store),
        )
        self.worker.on_free = self.look_now
        self.on_look: Callable[[], None] = lambda: None
        """Called after each look."""
        self._is_asked = False
        self._scheduler = BackgroundScheduler(
            timezone=UTC,  # which has no skipped or repeated hours
            # One thread, so that a look requested during another one follows it.
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 2},
        )

    @property
    def is_running(self) -> bool:
        return bool(self._scheduler.running)

    def start(self) -> None:
        """Start looking."""
        self.worker.notify(NoticeKind.STARTED)
        # However a look ends, the next one comes.
        every = IntervalTrigger(seconds=int(MAX_LOOK_INTERVAL.total_seconds()), timezone=UTC)
        self._scheduler.add_job(self._look, every, id=JOB_NAME, next_run_time=datetime.now(UTC))
        self._scheduler.start()

    def look_now(self) -> None:
        """Look as soon as possible, since something became due or has ended."""
        if not self._is_asked:
            self._is_asked = True
            self._schedule_look(datetime.now(UTC))

    def stop(self, timeout: float | None = 30.0) -> bool:
        """Begin nothing more, cancel what runs and wait; return whether all has ended in time."""
        has_ended = self.worker.stop(timeout)
        if self.is_running:
            self._scheduler.shutdown(wait=False)
        return has_ended

    def _look(self) -> None:
        self._is_asked = False
        next_at = self.worker.look()
        if not self._is_asked:
            # The worker may use a server's clock, APScheduler uses this machine's.
            self._schedule_look(datetime.now(UTC) + (next_at - self.worker.clock()))
        self.on_look()

    def _schedule_look(self, at: datetime) -> None:
        if self.is_running and not self.worker.is_stopping:
            # The scheduler may stop between check and call; then no other look is needed.
            with suppress(JobLookupError, RuntimeError):
                self._scheduler.modify_job(JOB_NAME, next_run_time=at)


def start_scheduler(
    store: SessionStore,
    rules: IdleRules | None = None,
    *,
    name: str | None = None,
    listeners: Sequence[NoticeListener] = (),
) -> IdleScheduler:
    """Compact sessions at rest, in this process, until `stop()` or the store is closed.

    Without `rules` it follows the settings, section `idle`. `listeners` are
    called with its notices; see `idle/notices.py`. Raises InvalidSettingError if this store's
    scheduler is already running in this process; other processes may run theirs.
    """
    background = store.context.background
    with store.context.starting:
        for other in [one for one in background if isinstance(one, IdleScheduler)]:
            if not other.worker.is_stopping:
                raise InvalidSettingError(
                    f"the scheduler of {store.name} is running already in this process:"
                    " stop it first, or use that one"
                )
            background.remove(other)
        scheduler = IdleScheduler(store, rules, name=name, listeners=listeners)
        background.append(scheduler)
        scheduler.start()
        return scheduler

"""Compacts due sessions under leases, and says when to look again; independent of schedulers."""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from threading import RLock
from time import monotonic
from typing import Any

from ....domain.errors import StorageError
from ....domain.idle_rules import IdleRules
from ...storage.event_log.event_store import get_utc_now
from ...storage.event_log.storage_errors import translate_storage_errors
from ..maintenance import Backups, Retention
from ..sessions.session_store import SessionStore
from ..sessions.store_context import ServerClock
from ..telemetry import record_notice
from .due_sessions import DueSession, DueSessionIndex, IdleAttempt
from .notices import NoticeKind, NoticeListener, WorkerNotice

logger = logging.getLogger("cutbank.idle")

MAX_LOOK_INTERVAL = timedelta(seconds=30)
"""The longest that a newly resting session or an expired lease stays unnoticed.

Also the pause after a failure of the database."""
MAX_WAIT_S = 1.0
"""The longest single wait for what runs."""
COUNT_NAMES = {
    NoticeKind.DONE: "done",
    NoticeKind.PASSED_OVER: "passed_over",
    NoticeKind.FAILED: "failed",
    NoticeKind.LOST: "lost",
    NoticeKind.CHORE_DONE: "chores_done",
    NoticeKind.CHORE_FAILED: "chores_failed",
}


class IdleWorker:
    """One of any number of workers on one store.

    The read models say what is due, and the log confirms it. Only the log decides who may compact a
    session: a request is a lease, and only the worker of the newest request records a boundary.
    Threads may call any method.
    """

    def __init__(
        self,
        store: SessionStore,
        rules: IdleRules | None = None,
        *,
        name: str | None = None,
        listeners: Sequence[NoticeListener] = (),
        backups: Backups | None = None,
        retention: Retention | None = None,
    ) -> None:
        self.store = store
        self.rules = rules or store.settings.idle.make_rules()
        self.backups = backups
        """What to make while no session is due."""
        self.retention = retention
        """What to erase then."""
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.listeners = [record_notice, *listeners]
        self.on_free: Callable[[], None] = lambda: None
        """Called when a session is done, so that the next may begin."""
        self.counts = dict.fromkeys(COUNT_NAMES.values(), 0)
        """How often each result came."""
        self.due_count: int | None = None
        """The number of sessions that were due at the last look."""
        self.trouble: str | None = None
        """Why the database cannot be used; None if it worked when last used."""
        self.looks = 0
        """The number of looks; it stops growing if the worker is stuck."""
        self.looked_at: datetime | None = None
        self.next_look: datetime | None = None
        """The latest time of the next look."""
        self._server_clock = ServerClock(store.events.recorder, store.events.clock)
        if store.events.clock is get_utc_now:
            # Workers on other machines read its timestamps, so they share one clock.
            store.events.set_clock(self._server_clock)
        limit = store.settings.compaction.limit or 0
        self.due = DueSessionIndex(store.read_models, self.rules, limit)
        self.begun = 0
        """The number of attempts and chores that this worker has begun."""
        self.is_finished = False
        """Whether the newest look found nothing running and began nothing."""
        self._running: dict[int, IdleAttempt] = {}
        self._works: set[Future[None]] = set()
        """What the pool has not ended yet: attempts, and the newest chore."""
        self._aside: dict[DueSession, datetime] = {}
        """Sessions that could not be compacted, with the time until which they are left alone."""
        self._changing = RLock()
        self._looking = RLock()
        self.is_stopping = False
        self._away_until = datetime.min.replace(tzinfo=UTC)
        """When to try the database again while there is trouble."""
        self._told_wait: tuple[str, datetime] | None = None
        """The newest notice of a wait, which is not repeated."""
        self._pool = ThreadPoolExecutor(self.rules.concurrency, thread_name_prefix="cutbank idle")

    @property
    def has_succeeded(self) -> bool:
        return not (self.counts["failed"] or self.counts["chores_failed"] or self.trouble)

    @property
    def running_attempts(self) -> list[IdleAttempt]:
        with self._changing:
            return list(self._running.values())

    @property
    def _is_busy(self) -> bool:
        with self._changing:
            return not all(work.done() for work in self._works)

    def clock(self) -> datetime:
        return self.store.events.clock()

    def look(self) -> datetime:
        """Begin what is due, as far as the rules allow; return when to look again.

        Does not wait for what it begins. If the database cannot be reached, it sends a notice and
        looks again after a pause.
        """
        with self._looking:
            before, was_busy = self.begun, self._is_busy
            try:
                with translate_storage_errors(self.store.name):
                    self.next_look = self._look()
            except StorageError as error:
                self.next_look = self._handle_database_away(error)
            self.looks, self.looked_at = self.looks + 1, self.clock()
            self.is_finished = not was_busy and self.begun == before
            return self.next_look

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is running; return whether that is so."""
        with self._changing:
            works = tuple(self._works)
        ends_at = inf if timeout is None else monotonic() + timeout
        # Python handles a signal that arrives as a wait begins only when the wait ends, so no
        # single wait is long.
        while wait(works, max(0, min(MAX_WAIT_S, ends_at - monotonic()))).not_done:
            if monotonic() >= ends_at:
                return False
        return True

    def stop(self, timeout: float | None = None) -> bool:
        """Begin nothing more, cancel what runs and wait; return whether all has ended.

        After that, this worker does not use its store any more.
        """
        with self._changing:
            is_over, self.is_stopping = self.is_stopping and not self._running, True
            running = self.running_attempts
        if is_over:
            return self._wait_for_end(timeout)
        self.notify(NoticeKind.STOPPING, running=len(running))
        for one in running:
            one.cancellation.request()
        has_ended = self._wait_for_end(timeout)
        self._pool.shutdown(wait=has_ended)
        self.notify(NoticeKind.STOPPED, running=len(self.running_attempts))
        return has_ended

    def _wait_for_end(self, timeout: float | None) -> bool:
        """Wait for running attempts, and for a look in another thread."""
        if not self.wait(timeout) or not self._looking.acquire(
            timeout=-1 if timeout is None else timeout
        ):
            return False
        self._looking.release()
        return True

    def notify(self, about: NoticeKind, **details: Any) -> None:
        notice = WorkerNotice(about, self.name, self.clock(), **details)
        if counted := COUNT_NAMES.get(about):
            with self._changing:
                self.counts[counted] += 1
        for listener in self.listeners:
            try:
                listener(notice)
            except Exception:  # a failing listener must not stop the work
                logger.exception("a listener failed at %s", about)

    def _look(self) -> datetime:
        now = self.clock()
        # If the end is further away than any pause, the clock was set back.
        if self.trouble and now < self._away_until <= now + MAX_LOOK_INTERVAL:
            return self._away_until
        if self.is_stopping:
            return now + MAX_LOOK_INTERVAL
        self._server_clock.compare()
        now = self.clock()
        latest = now + MAX_LOOK_INTERVAL
        self.store.read_models.catch_up(search=False, until=lambda: self.is_stopping)
        with self._changing:
            free = self.rules.concurrency - len(self._running)
            if self.is_stopping or free <= 0:
                return latest
            if self.trouble:
                free = 1  # a single attempt shows whether it is over
            running = set(self._running)
            self._aside = {due: until for due, until in self._aside.items() if until > now}
            aside = set(self._aside)
        waiting = self.due.find_waiting()
        all_due = [one for one in waiting if one.due_at <= now]
        self.due_count = len(all_due)
        next_at = waiting[len(all_due)].due_at if len(all_due) < len(waiting) else None
        found = [due for due in all_due if due.id not in running and due not in aside]
        if not found and not aside:
            self._handle_recovery()
        if found and (later := self._find_delay(now, len(all_due))):
            return min(later, latest)
        self._told_wait = None
        for due in found[:free]:
            self._begin_attempt(due, now)
        count = len(self.running_attempts)
        self.notify(NoticeKind.LOOKED, due=len(all_due), running=count, next_at=next_at)
        chore_at = None if count else self._begin_chore(now)
        return min(filter(None, (latest, next_at, chore_at)))

    def _find_delay(self, now: datetime, due: int) -> datetime | None:
        """Return until when due work has to wait; None if it may begin."""
        if until := self.rules.find_resume_time(now):
            reason = "quiet hours"
        elif until := self.due.find_affordable_time(now, self.rules.hourly_usd):
            reason = f"{self.rules.hourly_usd:g} dollars are spent in this hour"
        else:
            return None
        if self._told_wait != (reason, until):
            self._told_wait = reason, until
            self.notify(NoticeKind.WAITING, reason=reason, due=due, next_at=until)
        return until

    def _handle_database_away(self, error: Exception) -> datetime:
        before, self.trouble = self.trouble, str(error)
        self._away_until = self.clock() + MAX_LOOK_INTERVAL
        if before is None:
            self.notify(NoticeKind.DATABASE_AWAY, reason=self.trouble)
        return self._away_until

    def _handle_recovery(self) -> None:
        before, self.trouble = self.trouble, None
        if before is not None:
            self.notify(NoticeKind.DATABASE_BACK)

    def _begin_chore(self, now: datetime) -> datetime | None:
        """Begin a due chore outside quiet hours; return when the next one is due."""
        if self.rules.find_resume_time(now):
            return None
        next_times: list[datetime] = []
        chores: list[Backups | Retention | None] = [self.backups, self.retention]
        for chore in chores:
            due_at = chore.find_next_time() if chore else None
            if chore and due_at is not None and due_at <= now:
                if not self._is_busy:
                    self._submit(partial(self._run_chore, chore, now))
                return None
            next_times += [due_at] if due_at else []
        return min(next_times, default=None)

    def _run_chore(self, chore: Backups | Retention, now: datetime) -> None:
        try:
            made = chore.run_due(now)
        except StorageError as error:
            self._handle_database_away(error)
            return
        if made is not None:
            self.notify(
                NoticeKind.CHORE_DONE if made.outcome == "done" else NoticeKind.CHORE_FAILED,
                chore=made.chore,
                reason=made.reason,
                took_s=made.took_s,
                next_at=made.next_at,
            )

    def _begin_attempt(self, due: DueSession, now: datetime) -> "Future[None] | None":
        with self._changing:
            if self.is_stopping or due.id in self._running:
                return None
            attempt = IdleAttempt(self.store, self.due, due, self.rules, self.name, now)
            self._running[due.id] = attempt
            return self._submit(partial(self._run_attempt, attempt))

    def _submit(self, work: Callable[[], None]) -> "Future[None] | None":
        """Run it in the pool, unless this worker stops; then look for more."""

        def end(done: "Future[None]") -> None:
            with self._changing:
                self._works.discard(done)
            self.on_free()

        with self._changing:
            if self.is_stopping:
                return None
            future = self._pool.submit(work)
            self._works.add(future)
            self.begun += 1
        future.add_done_callback(end)
        return future

    def _run_attempt(self, attempt: IdleAttempt) -> None:
        due = attempt.due
        about: dict[str, Any] = {"session": due.key, "namespace": due.namespace}
        try:
            self.notify(NoticeKind.BEGAN, attempt=attempt.number, **about)
            result = attempt.run()
            if result.pause is not None:
                with self._changing:
                    self._aside[due] = self.clock() + result.pause
            if result.notice_kind is NoticeKind.DONE:
                self._handle_recovery()
                about["took_s"] = (self.clock() - attempt.began).total_seconds()
            self.notify(result.notice_kind, **about, **result.details)
            if result.error is not None:
                self._handle_database_away(result.error)
        finally:
            with self._changing:
                del self._running[due.id]

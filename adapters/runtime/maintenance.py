"""Runs the chores of a worker: backups, and erasing sessions that are too old."""

from datetime import datetime, timedelta

from ...domain.errors import CutbankError, NotFoundError
from .backups import DUE_NOW, FIRST_BACKOFF, Backups, BackupStatus
from .erasing import apply_retention
from .sessions.session_store import SessionStore

CHECK_INTERVAL = timedelta(hours=6)
"""How often a worker looks for what has become too old."""


class Retention:
    """What the settings, section `retention`, say of one store; any number of workers may do it."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self._next_at = DUE_NOW
        self._failures = 0

    def find_next_time(self) -> datetime | None:
        """Return when to look for old sessions, possibly in the past; None if all are kept."""
        return None if self.store.settings.retention.keeps_all else self._next_at

    def run_due(self, now: datetime) -> BackupStatus | None:
        """Erase what is too old; return a status if there was anything, or if that failed.

        Others go on meanwhile: on a server, free space is overwritten as it is used again.
        """
        due_at = self.find_next_time()
        if due_at is None or due_at > now:
            return None
        began = self.store.events.clock()
        self._next_at = now + CHECK_INTERVAL
        try:
            report = apply_retention(self.store.context, by="retention", rewrite=False)
        except NotFoundError:
            return None  # another worker was faster
        except CutbankError as error:
            self._failures += 1
            self._next_at = now + FIRST_BACKOFF
            return self._describe(began, str(error), is_done=False)
        self._failures = 0
        if not report.sessions:
            return None
        remark = f"{len(report.sessions):,} sessions, {report.content.bytes:,} bytes"
        return self._describe(began, remark, is_done=True)

    def _describe(self, began: datetime, reason: str, *, is_done: bool) -> BackupStatus:
        return BackupStatus(
            last_run=began,
            took_s=(self.store.events.clock() - began).total_seconds(),
            outcome="done" if is_done else "failed",
            reason=reason,
            failures=self._failures,
            next_at=self._next_at,
            chore="retention",
        )


def run_maintenance(store: SessionStore) -> list[BackupStatus]:
    """Make a backup if one is due, erase what is too old, and return the status of each.

    The settings, sections `maintenance` and `retention`, say what is due.
    """
    now = store.events.clock()
    ran = (Backups(store).run_due(now), Retention(store).run_due(now))
    return [one for one in ran if one is not None]

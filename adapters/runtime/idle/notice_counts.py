"""Counts the results of a worker's run."""

from dataclasses import dataclass
from threading import Lock

from .notices import NoticeKind, WorkerNotice

COUNT_NAMES = {
    NoticeKind.DONE: "done",
    NoticeKind.PASSED_OVER: "passed_over",
    NoticeKind.FAILED: "failed",
    NoticeKind.LOST: "lost",
    NoticeKind.CHORE_DONE: "chores_done",
    NoticeKind.CHORE_FAILED: "chores_failed",
}
TROUBLE_NOTICES = {NoticeKind.DATABASE_AWAY, NoticeKind.SETTINGS_REFUSED}
RECOVERY_NOTICES = {NoticeKind.DATABASE_BACK, NoticeKind.SETTINGS_RELOADED}


class NoticeCounts:
    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNT_NAMES.values(), 0)
        self.due: int | None = None
        self.trouble: str | None = None
        self._counting = Lock()

    def __call__(self, notice: WorkerNotice) -> None:
        with self._counting:
            if counted := COUNT_NAMES.get(notice.about):
                self.counts[counted] += 1
            if notice.about is NoticeKind.LOOKED:
                self.due = notice.due
            elif notice.about in TROUBLE_NOTICES:
                self.trouble = notice.reason
            elif notice.about in RECOVERY_NOTICES:
                self.trouble = None


@dataclass(frozen=True, slots=True)
class WorkerRun:
    worker: str
    counts: dict[str, int]
    trouble: str | None
    left_running: int = 0

    @property
    def has_succeeded(self) -> bool:
        return not (self.counts["failed"] or self.counts["chores_failed"] or self.trouble)

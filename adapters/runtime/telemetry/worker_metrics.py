"""Records metrics of an idle worker from its notices."""

from ..idle.notices import NoticeKind, WorkerNotice
from .error_logging import log_errors
from .instruments import Instruments, get_instruments

# Each session that was begun ends in one of these.
TASK_RESULTS = {
    NoticeKind.DONE: "done",
    NoticeKind.PASSED_OVER: "passed_over",
    NoticeKind.FAILED: "failed",
    NoticeKind.LOST: "lost",
}
MAINTENANCE_RESULTS = {NoticeKind.CHORE_DONE: "done", NoticeKind.CHORE_FAILED: "failed"}
INCIDENT_NOTICES = frozenset(
    {NoticeKind.DATABASE_AWAY, NoticeKind.SETTINGS_REFUSED, NoticeKind.CLOCK_JUMPED}
)


def record_worker_metrics(notice: WorkerNotice) -> None:
    with log_errors("an idle worker"):
        _record_metrics(get_instruments(), notice)


def _record_metrics(meters: Instruments, notice: WorkerNotice) -> None:
    about = notice.about
    if notice.due is not None:
        meters.idle_due.set(notice.due)
    if about is NoticeKind.LOOKED:
        meters.idle_looks.add(1)
        if notice.next_at is not None:
            meters.idle_next_due.set(max((notice.next_at - notice.at).total_seconds(), 0.0))
    if about is NoticeKind.BEGAN:
        meters.idle_running.add(1)
    if fate := TASK_RESULTS.get(about):
        meters.idle_running.add(-1)
        meters.idle_sessions.add(1, {"cutbank.idle.outcome": fate})
    if fate := MAINTENANCE_RESULTS.get(about):
        chore = notice.chore or "unknown"
        meters.idle_chores.add(1, {"cutbank.idle.outcome": fate, "cutbank.idle.chore": chore})
    if about in INCIDENT_NOTICES:
        meters.idle_incidents.add(1, {"cutbank.idle.incident": about.value})

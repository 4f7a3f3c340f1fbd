"""Defines the notices that a worker sends to logs, health files and metrics, and counts them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from threading import Lock
from typing import Any

from ....domain.hooks import JSON_NAMES


class NoticeKind(StrEnum):
    STARTED = "started"
    LOOKED = "looked"
    """The due sessions were looked up; `due`, `running` and `next_at` have the result."""
    WAITING = "waiting"
    """Due work waits until `next_at`: quiet hours, or the hour's budget is spent."""
    BEGAN = "began"
    """A session's compaction began."""
    DONE = "done"
    """A session was compacted, or its boundary prepared."""
    PASSED_OVER = "passed_over"
    """A due session needs nothing, or another process has it; `reason` says which."""
    FAILED = "failed"
    """An attempt failed; `next_at` is when the next one follows, if any."""
    LOST = "lost"
    """The lease ran out, or another process decided: the summary was not used."""
    CHORE_DONE = "chore_done"
    CHORE_FAILED = "chore_failed"
    DATABASE_AWAY = "database_away"
    DATABASE_BACK = "database_back"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WorkerNotice:
    """One thing that happened to a worker; fields that do not apply are None."""

    about: NoticeKind
    worker: str
    at: datetime
    session: str | None = None
    namespace: str | None = None
    reason: str | None = None
    due: int | None = None
    running: int | None = None
    next_at: datetime | None = None
    boundary: int | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    summarizer: str | None = None
    cost_usd: float | None = None
    attempt: int | None = None
    """The number of the attempt in a row, from 1."""
    took_s: float | None = None
    chore: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not None as JSON values, with times as ISO 8601 in UTC."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {
            JSON_NAMES.get(name, name): value.isoformat() if isinstance(value, datetime) else value
            for name, value in known.items()
        }


NoticeListener = Callable[[WorkerNotice], None]
"""Called with every notice, in the worker's thread; an exception is logged and ignored."""

COUNT_NAMES = {
    NoticeKind.DONE: "done",
    NoticeKind.PASSED_OVER: "passed_over",
    NoticeKind.FAILED: "failed",
    NoticeKind.LOST: "lost",
    NoticeKind.CHORE_DONE: "chores_done",
    NoticeKind.CHORE_FAILED: "chores_failed",
}


def fill_template(template: str, values: Mapping[str, object]) -> str:
    """Fill in a template; `|` separates its parts, and a part with a missing value is left out."""
    known = {name: _format_value(value) for name, value in values.items() if value is not None}
    filled = ""
    for part in template.split("|"):
        with suppress(KeyError):
            filled += part.format_map(known)
    return filled


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, slots=True)
class WorkerRun:
    worker: str
    counts: dict[str, int]
    trouble: str | None
    left_running: int = 0

    @property
    def has_succeeded(self) -> bool:
        return not (self.counts["failed"] or self.counts["chores_failed"] or self.trouble)


class NoticeCounts:
    """A listener that counts the results of a worker's run."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(COUNT_NAMES.values(), 0)
        self.due: int | None = None
        self.trouble: str | None = None
        self._counting = Lock()

    def __call__(self, notice: WorkerNotice) -> None:
        with self._counting:
            if counted := COUNT_NAMES.get(notice.about):
                self.counts[counted] += 1
            match notice.about:
                case NoticeKind.LOOKED:
                    self.due = notice.due
                case NoticeKind.DATABASE_AWAY:
                    self.trouble = notice.reason
                case NoticeKind.DATABASE_BACK:
                    self.trouble = None

    def make_run(self, worker: str, left_running: int) -> WorkerRun:
        return WorkerRun(worker, self.counts, self.trouble, left_running)

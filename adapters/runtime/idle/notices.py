"""Defines the notices of a worker, counts them, and logs them as text or JSON."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from threading import Lock
from typing import Any, Literal

from ....domain.hooks import JSON_NAMES

logger = logging.getLogger("cutbank.idle")


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


LogFormat = Literal["text", "json"]

NOTICE_TEXTS = {
    NoticeKind.STARTED: "started",
    NoticeKind.LOOKED: "{due} due, {running} running|; the next is due at {next_at}",
    NoticeKind.WAITING: "begins nothing until {next_at}|: {reason}",
    NoticeKind.BEGAN: "begins {session}, attempt {attempt}",
    NoticeKind.DONE: "compacted {session}: {pre_tokens} -> {post_tokens} tokens"
    "|, by {summarizer}|, for ${cost_usd}|, in {took_s} s",
    NoticeKind.PASSED_OVER: "leaves {session} as it is|: {reason}",
    NoticeKind.FAILED: "could not compact {session}|, attempt {attempt}|: {reason}"
    "|; again at {next_at}",
    NoticeKind.LOST: "did not use what was written for {session}|: {reason}",
    NoticeKind.CHORE_DONE: "did the chore {chore}|, in {took_s} s|: {reason}",
    NoticeKind.CHORE_FAILED: "could not do the chore {chore}|: {reason}|; again at {next_at}",
    NoticeKind.DATABASE_AWAY: "the database cannot be used|: {reason}",
    NoticeKind.DATABASE_BACK: "the database is back",
    NoticeKind.STOPPING: "stopping; {running} running",
    NoticeKind.STOPPED: "stopped; {running} still running",
}
_QUIET = {NoticeKind.LOOKED, NoticeKind.BEGAN, NoticeKind.PASSED_OVER}
_WARNINGS = {
    NoticeKind.FAILED,
    NoticeKind.LOST,
    NoticeKind.CHORE_FAILED,
    NoticeKind.DATABASE_AWAY,
}
_LEVELS: dict[NoticeKind, int] = dict.fromkeys(_QUIET, logging.DEBUG)
_LEVELS |= dict.fromkeys(_WARNINGS, logging.WARNING)
"""The log level by kind of notice; INFO for others."""


class WorkerLog:
    def __init__(self) -> None:
        self._waits: tuple[str | None, datetime | None] | None = None

    def __call__(self, notice: WorkerNotice) -> None:
        level = _LEVELS.get(notice.about, logging.INFO)
        if notice.about is NoticeKind.WAITING:
            # Each look repeats this notice, so only a changed one is logged.
            waits = (notice.reason, notice.next_at)
            level = logging.DEBUG if waits == self._waits else level
            self._waits = waits
        elif notice.about is NoticeKind.BEGAN:
            self._waits = None
        logger.log(level, "%s", format_notice(notice), extra={"notice": notice})


def format_notice(notice: WorkerNotice) -> str:
    """Return e.g. `compacted ours/talk: 36,000 -> 8,000 tokens, by extractive, in 0.4 s`."""
    values = asdict(notice)
    if notice.namespace not in {None, "default"}:
        values["session"] = f"{notice.namespace}/{notice.session}"
    if notice.next_at is not None:
        values["next_at"] = _format_time(notice.next_at)
    return fill_template(NOTICE_TEXTS[notice.about], values)


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


@contextmanager
def log_to_stderr(form: LogFormat, level: int) -> Iterator[None]:
    """Write this process's log to standard error; from other libraries only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _LineFormatter())
    ours, before = logging.getLogger("cutbank"), logging.getLogger("cutbank").level
    logging.getLogger().addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        ours.setLevel(before)


class _LineFormatter(logging.Formatter):
    """Formats `2026-01-01T09:30:00Z WARNING host:42 could not compact ...`."""

    def format(self, record: logging.LogRecord) -> str:
        notice: WorkerNotice | None = getattr(record, "notice", None)
        at = notice.at if notice else datetime.fromtimestamp(record.created, UTC)
        who = notice.worker if notice else record.name
        message = " ".join(record.getMessage().split())
        line = f"{_format_time(at)} {record.levelname} {who} {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    """Formats a notice as JSON with its level and text; other records with their message."""

    def format(self, record: logging.LogRecord) -> str:
        notice: WorkerNotice | None = getattr(record, "notice", None)
        said = {"level": record.levelname.lower(), "message": record.getMessage()}
        if notice is not None:
            return json.dumps({**notice.to_json(), **said})
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps({"at": at, "logger": record.name, **said})


def _format_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Defines the notices of a worker, and logs them as text or JSON."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
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


@dataclass(frozen=True, slots=True)
class WorkerRun:
    worker: str
    counts: dict[str, int]
    """How often each result came."""
    trouble: str | None
    left_running: int

    @property
    def has_succeeded(self) -> bool:
        return not (self.counts["failed"] or self.counts["chores_failed"] or self.trouble)


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
_LEVELS = {
    NoticeKind.LOOKED: logging.DEBUG,
    NoticeKind.BEGAN: logging.DEBUG,
    NoticeKind.PASSED_OVER: logging.DEBUG,
    NoticeKind.FAILED: logging.WARNING,
    NoticeKind.LOST: logging.WARNING,
    NoticeKind.CHORE_FAILED: logging.WARNING,
    NoticeKind.DATABASE_AWAY: logging.WARNING,
}
"""The log level by kind of notice; INFO for others."""


def log_notice(notice: WorkerNotice) -> None:
    level = _LEVELS.get(notice.about, logging.INFO)
    logger.log(level, "%s", format_notice(notice), extra={"notice": notice})


def format_notice(notice: WorkerNotice) -> str:
    """Return e.g. `compacted ours/talk: 36,000 -> 8,000 tokens, by extractive, in 0.4 s`."""
    known = {
        name: _format_value(value) for name, value in asdict(notice).items() if value is not None
    }
    if notice.namespace not in {None, "default"}:
        known["session"] = f"{notice.namespace}/{notice.session}"
    text = ""
    for part in NOTICE_TEXTS[notice.about].split("|"):
        with suppress(KeyError):  # a part with a missing value is left out
            text += part.format_map(known)
    return text


def _format_value(value: object) -> str:
    match value:
        case datetime():
            return _format_time(value)
        case float():
            return f"{value:,.4g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


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

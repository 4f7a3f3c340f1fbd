"""Logs a worker's notices, as lines of text or of JSON."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from .notices import NoticeKind, WorkerNotice

logger = logging.getLogger("cutbank.idle")

LogFormat = Literal["text", "json"]

LOG_LEVELS = {
    NoticeKind.LOOKED: logging.DEBUG,
    NoticeKind.BEGAN: logging.DEBUG,
    NoticeKind.PASSED_OVER: logging.DEBUG,
    NoticeKind.FAILED: logging.WARNING,
    NoticeKind.LOST: logging.WARNING,
    NoticeKind.CHORE_FAILED: logging.WARNING,
    NoticeKind.DATABASE_AWAY: logging.WARNING,
    NoticeKind.SETTINGS_DIFFER: logging.WARNING,
    NoticeKind.CLOCK_JUMPED: logging.WARNING,
}
"""The log level by kind of notice; others have INFO."""
NOTICE_TEXTS = {
    NoticeKind.STARTED: "started",
    NoticeKind.DATABASE_AWAY: "the database cannot be used",
    NoticeKind.DATABASE_BACK: "the database is back",
    NoticeKind.SETTINGS_DIFFER: "other workers have other settings",
    NoticeKind.CLOCK_JUMPED: "the clock was set back; looking now",
}


class WorkerLog:
    def __init__(self) -> None:
        self._waits: tuple[str | None, datetime | None] | None = None

    def __call__(self, notice: WorkerNotice) -> None:
        level = LOG_LEVELS.get(notice.about, logging.INFO)
        if notice.about is NoticeKind.WAITING:
            # Each look repeats this notice, so only a changed one is logged.
            waits = (notice.reason, notice.next_at)
            level = logging.DEBUG if waits == self._waits else level
            self._waits = waits
        elif notice.about is NoticeKind.BEGAN:
            self._waits = None
        logger.log(level, "%s", format_notice(notice), extra={"notice": notice})


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
        stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{stamp} {record.levelname} {who} {' '.join(record.getMessage().split())}"
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


def format_notice(notice: WorkerNotice) -> str:
    """Return e.g. `compacted ours/talk: 36,000 -> 8,000 tokens, by extractive, in 0.4 s`."""
    reason = f": {notice.reason}" if notice.reason else ""
    session, chore = _format_session(notice), notice.chore
    match notice.about:
        case NoticeKind.LOOKED:
            later = f"; the next is due at {_format_time(notice.next_at)}" if notice.next_at else ""
            return f"{notice.due} due, {notice.running} running{later}"
        case NoticeKind.WAITING:
            return f"begins nothing until {_format_time(notice.next_at)}{reason}"
        case NoticeKind.BEGAN:
            return f"begins {session}, attempt {notice.attempt}"
        case NoticeKind.DONE:
            return f"compacted {session}: {_format_gain(notice)}"
        case NoticeKind.PASSED_OVER:
            return f"leaves {session} as it is{reason}"
        case NoticeKind.FAILED:
            attempt = f" (attempt {notice.attempt})" if notice.attempt else ""
            return f"could not compact {session}{attempt}{reason}{_format_next_time(notice)}"
        case NoticeKind.LOST:
            return f"did not use what was written for {session}{reason}"
        case NoticeKind.CHORE_DONE:
            return f"did the chore {chore}{_format_seconds(notice)}{reason}"
        case NoticeKind.CHORE_FAILED:
            return f"could not do the chore {chore}{reason}{_format_next_time(notice)}"
        case NoticeKind.STOPPING:
            return f"stopping; {notice.running or 'none'} running"
        case NoticeKind.STOPPED:
            return f"stopped with {notice.running} still running" if notice.running else "stopped"
        case about:
            return f"{NOTICE_TEXTS[about]}{reason}"


def _format_session(notice: WorkerNotice) -> str:
    if notice.namespace in {None, "default"}:
        return str(notice.session)
    return f"{notice.namespace}/{notice.session}"


def _format_gain(notice: WorkerNotice) -> str:
    gain = f"{notice.pre_tokens or 0:,} -> {notice.post_tokens or 0:,} tokens"
    by = f", by {notice.summarizer}" if notice.summarizer else ""
    cost = f", for ${notice.cost_usd:.4f}" if notice.cost_usd else ""
    return f"{gain}{by}{cost}{_format_seconds(notice)}"


def _format_seconds(notice: WorkerNotice) -> str:
    return f", in {notice.took_s:.1f} s" if notice.took_s is not None else ""


def _format_next_time(notice: WorkerNotice) -> str:
    if notice.next_at is not None:
        return f"; again at {_format_time(notice.next_at)}"
    return "; not again until there is new activity in it" if notice.attempt else ""


def _format_time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else "it is said"

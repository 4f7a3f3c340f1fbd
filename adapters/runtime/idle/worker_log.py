"""Logs a worker's notices, as lines of text or of JSON."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Literal

from .notices import NoticeKind, WorkerNotice, fill_template

logger = logging.getLogger("cutbank.idle")

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

"""Logs a worker's notices, as lines of text or of JSON."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from .notice_lines import format_notice
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
    NoticeKind.SETTINGS_REFUSED: logging.WARNING,
    NoticeKind.SETTINGS_DIFFER: logging.WARNING,
    NoticeKind.CLOCK_JUMPED: logging.WARNING,
}
"""The log level by kind of notice; others have INFO."""


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

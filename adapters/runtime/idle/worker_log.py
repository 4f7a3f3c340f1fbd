"""What a worker says, as log records: a line for people, or one JSON object a line."""

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
"""Of how much weight a notice is; those that are not here are told unless one asks for quiet."""


class WorkerLog:
    """Hears a worker's notices, and logs each of them once."""

    def __init__(self) -> None:
        self._waits: tuple[str | None, datetime | None] | None = None

    def __call__(self, notice: WorkerNotice) -> None:
        level = LOG_LEVELS.get(notice.about, logging.INFO)
        if notice.about is NoticeKind.WAITING:
            # It is found out again at each look.
            waits = (notice.reason, notice.next_at)
            level = logging.DEBUG if waits == self._waits else level
            self._waits = waits
        elif notice.about is NoticeKind.BEGAN:
            self._waits = None
        logger.log(level, "%s", format_notice(notice), extra={"notice": notice})


@contextmanager
def log_to_stderr(form: LogFormat, level: int) -> Iterator[None]:
    """Write what this process logs to standard error; of other libraries only warnings."""
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
    """`2026-01-01T09:30:00Z WARNING host:42 could not compact ...`."""

    def format(self, record: logging.LogRecord) -> str:
        notice: WorkerNotice | None = getattr(record, "notice", None)
        at = notice.at if notice else datetime.fromtimestamp(record.created, UTC)
        who = notice.worker if notice else record.name
        stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{stamp} {record.levelname} {who} {' '.join(record.getMessage().split())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _JsonFormatter(logging.Formatter):
    """The notice with its level and the line for people; of other records what they say."""

    def format(self, record: logging.LogRecord) -> str:
        notice: WorkerNotice | None = getattr(record, "notice", None)
        said = {"level": record.levelname.lower(), "message": record.getMessage()}
        if notice is not None:
            return json.dumps({**notice.to_json(), **said})
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps({"at": at, "logger": record.name, **said})

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

NOTICE_LOGS = {
    NoticeKind.STARTED: (logging.INFO, "started"),
    NoticeKind.LOOKED: (logging.DEBUG, "{notice.due} due, {notice.running} running{next_due}"),
    NoticeKind.WAITING: (logging.INFO, "begins nothing until {next_time}{reason}"),
    NoticeKind.BEGAN: (logging.DEBUG, "begins {session}, attempt {notice.attempt}"),
    NoticeKind.DONE: (logging.INFO, "compacted {session}: {gain}{took}"),
    NoticeKind.PASSED_OVER: (logging.DEBUG, "leaves {session} as it is{reason}"),
    NoticeKind.FAILED: (logging.WARNING, "could not compact {session}{attempt}{reason}{again}"),
    NoticeKind.LOST: (logging.WARNING, "did not use what was written for {session}{reason}"),
    NoticeKind.CHORE_DONE: (logging.INFO, "did the chore {notice.chore}{took}{reason}"),
    NoticeKind.CHORE_FAILED: (
        logging.WARNING,
        "could not do the chore {notice.chore}{reason}{again}",
    ),
    NoticeKind.DATABASE_AWAY: (logging.WARNING, "the database cannot be used{reason}"),
    NoticeKind.DATABASE_BACK: (logging.INFO, "the database is back"),
    NoticeKind.SETTINGS_DIFFER: (logging.WARNING, "other workers have other settings{reason}"),
    NoticeKind.CLOCK_JUMPED: (logging.WARNING, "the clock was set back; looking now"),
    NoticeKind.STOPPING: (logging.INFO, "stopping; {running_or_none} running"),
    NoticeKind.STOPPED: (logging.INFO, "stopped{still_running}"),
}
"""The log level and the text by kind of notice."""


class WorkerLog:
    def __init__(self) -> None:
        self._waits: tuple[str | None, datetime | None] | None = None

    def __call__(self, notice: WorkerNotice) -> None:
        level, _ = NOTICE_LOGS[notice.about]
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
    space = "" if notice.namespace in {None, "default"} else f"{notice.namespace}/"
    gain = f"{notice.pre_tokens or 0:,} -> {notice.post_tokens or 0:,} tokens"
    gain += f", by {notice.summarizer}" if notice.summarizer else ""
    gain += f", for ${notice.cost_usd:.4f}" if notice.cost_usd else ""
    next_time, next_due = "it is said", ""
    again = "; not again until there is new activity in it" if notice.attempt else ""
    if notice.next_at is not None:
        next_time = notice.next_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        next_due, again = f"; the next is due at {next_time}", f"; again at {next_time}"
    return NOTICE_LOGS[notice.about][1].format(
        notice=notice,
        session=f"{space}{notice.session}",
        attempt=f" (attempt {notice.attempt})" if notice.attempt else "",
        gain=gain,
        reason=f": {notice.reason}" if notice.reason else "",
        took=f", in {notice.took_s:.1f} s" if notice.took_s is not None else "",
        next_time=next_time,
        next_due=next_due,
        again=again,
        running_or_none=notice.running or "none",
        still_running=f" with {notice.running} still running" if notice.running else "",
    )

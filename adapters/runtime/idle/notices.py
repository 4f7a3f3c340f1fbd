"""Defines the notices of a worker, and logs them as text or JSON."""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


LogFormat = Literal["text", "json"]

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
    logger.log(level, "%s", _format_notice(notice), extra={"notice": notice})


def _format_notice(notice: WorkerNotice) -> str:
    """Return e.g. `done session=talk pre_tokens=36000 post_tokens=8000 took_s=0.4`."""
    told = notice.to_json()
    words = {name: told[name] for name in told if name not in {"about", "worker", "at"}}
    return " ".join([notice.about, *(f"{name}={_quote(word)}" for name, word in words.items())])


def _quote(word: object) -> str:
    text = str(word)
    return json.dumps(text, ensure_ascii=False) if re.search(r'[\s"=]', text) else text


@contextmanager
def log_to_stderr(form: LogFormat, level: int) -> Iterator[None]:
    """Write this process's log to standard error; from other libraries only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_NoticeFormatter(form))
    ours, before = logging.getLogger("cutbank"), logging.getLogger("cutbank").level
    logging.getLogger().addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        ours.setLevel(before)


class _NoticeFormatter(logging.Formatter):
    """Formats `2026-01-01T09:30:00Z WARNING host:42 failed ...`, or the same as JSON."""

    def __init__(self, form: LogFormat) -> None:
        super().__init__()
        self._is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        notice: WorkerNotice | None = getattr(record, "notice", None)
        at = notice.at if notice else datetime.fromtimestamp(record.created, UTC)
        message = " ".join(record.getMessage().split())
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._is_json:
            told = notice.to_json() if notice else {"at": at.isoformat(), "logger": record.name}
            told |= {"level": record.levelname.lower(), "message": message}
            return json.dumps(told | ({"traceback": trace} if trace else {}))
        moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        who = notice.worker if notice else record.name
        return f"{moment} {record.levelname} {who} {message}" + (f"\n{trace}" if trace else "")

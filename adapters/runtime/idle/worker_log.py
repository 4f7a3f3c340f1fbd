"""What a worker says, as log records: a line for people, or one JSON object a line."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from .notice_lines import line_of
from .notices import About, Notice

logger = logging.getLogger("cutbank.idle")

Form = Literal["text", "json"]

LEVELS = {
    About.LOOKED: logging.DEBUG,
    About.BEGAN: logging.DEBUG,
    About.PASSED_OVER: logging.DEBUG,
    About.FAILED: logging.WARNING,
    About.LOST: logging.WARNING,
    About.CHORE_FAILED: logging.WARNING,
    About.DATABASE_AWAY: logging.WARNING,
    About.SETTINGS_REFUSED: logging.WARNING,
    About.SETTINGS_DIFFER: logging.WARNING,
    About.CLOCK_JUMPED: logging.WARNING,
}
"""Of how much weight a notice is; those that are not here are told unless one asks for quiet."""


class WorkerLog:
    """Hears a worker's notices, and logs each of them once."""

    def __init__(self) -> None:
        self._waits: tuple[str | None, datetime | None] | None = None

    def __call__(self, notice: Notice) -> None:
        level = LEVELS.get(notice.about, logging.INFO)
        if notice.about is About.WAITING:
            # It is found out again at each look.
            waits = (notice.reason, notice.next_at)
            level = logging.DEBUG if waits == self._waits else level
            self._waits = waits
        elif notice.about is About.BEGAN:
            self._waits = None
        logger.log(level, "%s", line_of(notice), extra={"notice": notice})


@contextmanager
def logging_to_stderr(form: Form, level: int) -> Iterator[None]:
    """Write what this process logs to standard error; of other libraries only warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Objects() if form == "json" else _Lines())
    ours, before = logging.getLogger("cutbank"), logging.getLogger("cutbank").level
    logging.getLogger().addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        ours.setLevel(before)


class _Lines(logging.Formatter):
    """`2026-01-01T09:30:00Z WARNING host:42 could not compact ...`."""

    def format(self, record: logging.LogRecord) -> str:
        notice: Notice | None = getattr(record, "notice", None)
        at = notice.at if notice else datetime.fromtimestamp(record.created, UTC)
        who = notice.worker if notice else record.name
        stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{stamp} {record.levelname} {who} {' '.join(record.getMessage().split())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Objects(logging.Formatter):
    """The notice with its level and the line for people; of other records what they say."""

    def format(self, record: logging.LogRecord) -> str:
        notice: Notice | None = getattr(record, "notice", None)
        said = {"level": record.levelname.lower(), "message": record.getMessage()}
        if notice is not None:
            return json.dumps({**notice.as_json(), **said})
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps({"at": at, "logger": record.name, **said})

"""What a worker says of its work: to logs, to its health file, to metrics, to whoever listens."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class NoticeKind(StrEnum):
    """What a notice is about."""

    STARTED = "started"
    LOOKED = "looked"
    """The due sessions were looked up; `due`, `running` and `next_at` say what was found."""
    WAITING = "waiting"
    """Due work is put off until `next_at`: quiet hours, or the hour's money is spent."""
    BEGAN = "began"
    """A session's compaction begins."""
    DONE = "done"
    """A session was compacted, or its boundary prepared."""
    PASSED_OVER = "passed_over"
    """A due session needs nothing, or is somebody else's now: `reason` says why."""
    FAILED = "failed"
    """An attempt came to nothing; `next_at` is when it is tried again, if it is."""
    LOST = "lost"
    """The lease ran out, or somebody else decided: what was written was not used."""
    CHORE_DONE = "chore_done"
    CHORE_FAILED = "chore_failed"
    DATABASE_AWAY = "database_away"
    DATABASE_BACK = "database_back"
    SETTINGS_RELOADED = "settings_reloaded"
    SETTINGS_REFUSED = "settings_refused"
    SETTINGS_DIFFER = "settings_differ"
    """Another worker on the same read models goes by other rules."""
    CLOCK_JUMPED = "clock_jumped"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WorkerNotice:
    """One thing that happened to a worker; what is not known of it is None."""

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
    summariser: str | None = None
    cost_usd: float | None = None
    attempt: int | None = None
    """Which attempt in a row it was, from 1."""
    took_s: float | None = None
    chore: str | None = None

    def to_json(self) -> dict[str, Any]:
        """All that is known, as JSON has it: moments as ISO 8601 in UTC."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in known.items()
        }


NoticeListener = Callable[[WorkerNotice], None]
"""Hears every notice, in the worker's thread; what it raises is logged, and no more."""

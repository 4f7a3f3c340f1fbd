"""Defines the stored record of a maintenance task, and its status."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

ShouldContinue = Callable[[], bool]
"""Called between two steps; returns False if the task should stop."""


class TaskOutcome(StrEnum):
    DONE = "done"
    STOPPED = "stopped"
    """Stopped for other work; the next run continues there."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """The state of one task; empty if it never ran."""

    began_at: datetime | None = None
    """When the last run began, successful or not."""
    ended_at: datetime | None = None
    outcome: TaskOutcome | None = None
    reason: str | None = None
    """Why it failed or stopped, or the run's remark."""
    saved: int = 0
    """The bytes freed by the last run."""
    saved_in_all: int = 0
    failures: int = 0
    position: int = 0
    """The log notification up to which it is done, for a task that reads the log."""

    @property
    def took_s(self) -> float | None:
        """How long the last run took; None if there was none."""
        if self.began_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.began_at).total_seconds()

    def to_json(self) -> str:
        known = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(known, default=datetime.isoformat)

    @classmethod
    def parse(cls, text: str | None) -> "TaskRecord":
        """Return the record; empty if it is unreadable, so that the task runs again."""
        try:
            return _RECORD.validate_json(text or "{}")
        except ValidationError:
            return cls()


_RECORD = TypeAdapter(TaskRecord)
"""Ignores the fields that a newer version may have written."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """What `idle --status` says of a task, and a run of it reports."""

    chore: str
    last_run: datetime | None
    took_s: float | None
    outcome: TaskOutcome | None
    reason: str | None
    """One line: for a failure the thing, the fault and the remedy."""
    saved: int
    """The bytes freed by the last run."""
    saved_in_all: int
    failures: int
    next_at: datetime | None
    """None if it never ran, and is due now."""

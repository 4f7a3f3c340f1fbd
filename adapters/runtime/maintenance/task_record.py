"""When a chore was done and what came of it, as it is written down for whoever comes next."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class TaskOutcome(StrEnum):
    """What came of a run."""

    DONE = "done"
    STOPPED = "stopped"
    """There was something better to do in the middle of it; it goes on where it stopped."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What is known of one chore; that of a chore that was never done is empty."""

    began_at: datetime | None = None
    """When it was last done or tried."""
    ended_at: datetime | None = None
    outcome: TaskOutcome | None = None
    reason: str | None = None
    """Why it failed or stopped, or what is worth a word."""
    saved: int = 0
    """Bytes, in the last run."""
    saved_in_all: int = 0
    failures: int = 0
    """In a row."""
    position: int = 0
    """The notification of the log up to which it is done, where it goes through the log."""

    def to_json(self) -> str:
        known = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(known, default=_plain)

    @classmethod
    def parse(cls, text: str | None) -> "TaskRecord":
        """What was written; of what cannot be read, nothing: then it is done again."""
        try:
            known: dict[str, Any] = json.loads(text or "{}")
            for name in ("began_at", "ended_at"):
                if name in known:
                    known[name] = datetime.fromisoformat(known[name])
            if "outcome" in known:
                known["outcome"] = TaskOutcome(known["outcome"])
            # A newer version may have written more.
            return cls(**{name: known[name] for name in cls.__slots__ if name in known})
        except (ValueError, TypeError):
            return cls()


def _plain(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What became of one chore that was due."""

    chore: str
    outcome: TaskOutcome
    began_at: datetime
    took_s: float
    next_at: datetime
    saved: int = 0
    """Bytes."""
    reason: str | None = None
    """Of a failure one line: what, where and what to do."""

    @property
    def has_failed(self) -> bool:
        return self.outcome is TaskOutcome.FAILED

    @property
    def was_stopped(self) -> bool:
        return self.outcome is TaskOutcome.STOPPED


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One chore as `idle --status` shows it."""

    chore: str
    last_run: datetime | None
    outcome: TaskOutcome | None
    reason: str | None
    saved: int
    saved_in_all: int
    failures: int
    next_at: datetime | None
    """None where it is due at once, as it was never done."""

"""What a chore is to whoever sees to it that it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ...storage.event_log.storage import Place
from .chore_record import ChoreRecord

GoOn = Callable[[], bool]
"""Is asked between two steps whether there is nothing better to do."""


@dataclass(frozen=True, slots=True)
class Work:
    """What came of a run."""

    saved: int = 0
    """Bytes that the disk has back."""
    is_whole: bool = True
    """Whether there is nothing left to do for now."""
    note: str | None = None
    """What is worth a word."""
    position: int = 0


class Chore(Protocol):
    """One thing to do now and then; each step of it is whole, whoever is killed and whenever."""

    @property
    def name(self) -> str: ...

    @property
    def every(self) -> timedelta: ...

    @property
    def place(self) -> Place:
        """Where it is written down, and where only one does it at a time."""
        ...

    def run(self, record: ChoreRecord, go_on: GoOn) -> Work:
        """Do what is to be done, as long as `go_on` says so; `record` is the newest one."""
        ...

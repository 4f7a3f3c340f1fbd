"""Sessions at rest, and what workers said: what tests of idle work share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from cutbank import Block, StoredSession
from cutbank.adapters.idle.notices import About, Notice
from cutbank.adapters.idle.worker import IdleWorker
from cutbank.domain.idle import IdleRules

RULES = IdleRules(idle_time_s=300, least_utilisation=0.05, concurrency=2, backoff_s=60)
WORDS = "the clay under the river bank slid in the night and nobody had seen it coming "


@dataclass
class Told:
    """What workers said, in order."""

    notices: list[Notice] = field(default_factory=list)

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)

    def about(self, *about: About) -> list[Notice]:
        return [notice for notice in self.notices if notice.about in about]

    def keys(self, about: About) -> list[str | None]:
        return [notice.session for notice in self.about(about)]


Working = Callable[..., IdleWorker]


class SetClock(Protocol):
    now: datetime


def talk(session: StoredSession, turns: int = 12, words: int = 160) -> None:
    """Say enough for a compaction to gain by it: of 36,000 tokens, the newest 20,000 are kept."""
    for turn in range(turns):
        session.append(Block.user(f"{turn}: what of it? {WORDS * words}"))
        session.append(Block.assistant(f"{turn}: {WORDS * 2}"))


def pass_time(clock: SetClock, seconds: float) -> None:
    clock.now += timedelta(seconds=seconds)

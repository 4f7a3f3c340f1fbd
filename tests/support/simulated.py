"""Hours of agents' lives on a clock that is told the time, with workers that look at them."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Self

import pytest
from clock import StillClock
from databases import memory_folder
from resting import Told, pass_time

import cutbank
from cutbank import (
    Block,
    ExtractiveSummarizer,
    Settings,
    ToolCall,
    ToolResult,
    Usage,
    schedule_wake,
)
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.settings.compaction_settings import (
    CompactionSettings,
    PinSettings,
    SummarySettings,
)
from cutbank.domain.errors import SummarizerFailedError
from cutbank.domain.idle_rules import SPEND_WINDOW, IdleRules
from cutbank.domain.summaries.summarizer import Draft, Material, Summarizer

TURN = "the clay under the river bank slid in the night " * 31
"""About 370 tokens: six of them are more than half of what fits, and worth leaving."""
FULL = 6
PRICE = 0.3
RULES = IdleRules(idle_time_s=300, least_utilization=0.5, concurrency=2, hourly_usd=None)
SETTINGS = Settings(
    pins=PinSettings(first_prompt=False, kinds=()),
    compaction=CompactionSettings(limit=4_000, settings={"keep_tokens": "600"}),
    summary=SummarySettings(chain=("llm", "extractive"), model="paid", retries=0),
)

What = Literal["say", "call", "answer", "wake", "stay", "close"]


@dataclass(frozen=True)
class Action:
    """What an agent does, so many seconds after what it did before."""

    key: str
    after_s: int
    what: What
    much: int = 1
    """Turns that are said, or minutes until it wakes."""


@dataclass
class Paid:
    """Writes for a fixed price; fails so often for each session before it does."""

    clock: StillClock
    failures: dict[str, int]
    name: str = "llm"
    spent: list[datetime] = field(default_factory=list)

    def summarize(self, material: Material, /) -> Draft:
        key = material.removed_items[0].block.text.partition(":")[0]
        if self.failures.get(key, 0) > 0:
            self.failures[key] -= 1
            raise SummarizerFailedError("the provider is out of order")
        self.spent.append(self.clock())
        text = "They spoke of the clay under the river bank."
        return Draft(text, model="paid", usage=Usage(input=9, output=9), cost_usd=PRICE)


@dataclass
class Known:
    """What the test itself knows of a session."""

    last: datetime
    calls: list[str] = field(default_factory=list)
    """Those that are open."""
    wake: datetime | None = None
    closed: bool = False
    turns: int = 0
    """Since it was compacted."""
    handled: bool = False
    """Whether a worker has looked after it since something happened in it."""
    begun: list[datetime] = field(default_factory=list)
    """Attempts since something happened in it."""
    compacted: int = 0
    """Of this rest."""

    def due_at(self, rules: IdleRules) -> datetime | None:
        if self.calls or self.closed:
            return None
        return max(self.last, self.wake or self.last) + timedelta(seconds=rules.idle_time_s)


class Simulation:
    """One store, its agents, and workers that look when they said they would.

    After each look what is known of every session is held against what the workers did.
    """

    def __init__(
        self, rules: IdleRules = RULES, *, workers: int = 1, failures: dict[str, int] | None = None
    ) -> None:
        self._stack = ExitStack()
        self.rules = rules
        self.clock = StillClock()
        self.known: dict[str, Known] = {}
        self.told = Told()
        self.summarizer = Paid(self.clock, dict(failures or {}))
        self.workers: list[IdleWorker] = [None] * workers  # type: ignore[list-item]  # made below
        self.looks: list[datetime] = [self.clock.now] * workers
        self.late: Callable[[], float] = lambda: 0.0
        """By how many seconds each look comes too late, or too early (then at most halfway)."""

    def __enter__(self) -> Self:
        patch = self._stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(from_settings, "make_summarizer", self._summarizer)
        database = f"{self._stack.enter_context(memory_folder())}/log.db"
        opened = cutbank.open(database, clock=self.clock, settings=SETTINGS, synchronous="NORMAL")
        self.store = self._stack.enter_context(opened)
        for number in range(len(self.workers)):
            self.restart(number)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.stop()
        self._stack.close()

    def restart(self, number: int) -> None:
        """Let a new worker take this one's place."""
        if self.workers[number]:
            self.workers[number].stop()
        self.workers[number] = IdleWorker(self.store, self.rules, listeners=[self.told])
        self.looks[number] = self.clock.now

    def run(self, *actions: Action) -> None:
        for action in actions:
            self.pass_time(action.after_s)
            self._act(action)

    def pass_time(self, seconds: float) -> None:
        """Let time pass; workers look when they wanted to."""
        until = self.clock.now + timedelta(seconds=seconds)
        while min(self.looks) <= until:
            number = self.looks.index(min(self.looks))
            self.clock.now = max(self.clock.now, self.looks[number])
            self.look(number)
        self.clock.now = max(self.clock.now, until)

    def jump(self, seconds: float) -> None:
        """The clock is put forward or back; who waits, waits as long as before."""
        pass_time(self.clock, seconds)
        self.looks = [at + timedelta(seconds=seconds) for at in self.looks]

    def look(self, number: int = 0) -> None:
        """One worker looks, until it begins nothing more."""
        worker, begun, next_at = self.workers[number], -1, self.clock.now
        while worker.begun > begun:
            begun = worker.begun
            next_at = worker.look()
            assert worker.wait(60)
            self._hear()
        now = self.clock.now
        assert next_at > now
        # A look that comes too early has to get there all the same, in the end.
        is_near = next_at - now <= timedelta(seconds=1)
        earliest = next_at if is_near else now + (next_at - now) / 2
        self.looks[number] = max(next_at + timedelta(seconds=self.late()), earliest)
        self._check_nobody_waits()

    def check_all_done(self) -> None:
        """Whatever rests by now, and would gain, was compacted."""
        for key, known in self.known.items():
            due_at = known.due_at(self.rules)
            if due_at is not None and due_at <= self.clock.now:
                assert known.turns < FULL, f"{key} rests, and was never compacted"

    def _act(self, action: Action) -> None:
        key, session = action.key, self.store.session(action.key)
        known = self.known.setdefault(key, Known(self.clock.now))
        match action.what:
            case _ if known.closed:
                return
            case "say" | "close" if known.calls:
                return  # it waits for its tool, as agents do
            case "say":
                turns = range(session.position, session.position + action.much)
                session.append(*(Block.user(f"{key}: {position} {TURN}") for position in turns))
                known.turns += action.much
            case "call":
                known.calls.append(str(session.position))
                session.append(ToolCall(tool_call_id=known.calls[-1], name="x", arguments="{}"))
            case "answer" if known.calls:
                session.append(ToolResult(tool_call_id=known.calls.pop(), content="done"))
            case "wake":
                known.wake = self.clock.now + timedelta(minutes=action.much)
                schedule_wake(session, known.wake)
            case "stay" if known.wake:
                known.wake = None
                schedule_wake(session, None)
            case "close":
                session.close()
                known.closed = True
            case _:
                return
        known.last = self.clock.now
        known.handled, known.compacted, known.begun = False, 0, []

    def _hear(self) -> None:
        """Hold what was done against what is known."""
        heard, self.told.notices = self.told.notices, []
        assert not [notice for notice in heard if notice.about is NoticeKind.DATABASE_AWAY], heard
        for notice in heard:
            if notice.session is None:
                continue
            known = self.known[notice.session]
            match notice.about:
                case NoticeKind.BEGAN:
                    self._check_may_begin(notice, known)
                case NoticeKind.DONE:
                    known.handled, known.turns = True, 0
                    known.compacted += 1
                    assert known.compacted == 1, f"compacted twice in one rest: {notice}"
                case NoticeKind.PASSED_OVER | NoticeKind.LOST:
                    # Of two workers on one session one is told that it is too late.
                    assert known.turns < FULL or len(self.workers) > 1, notice
                    known.handled = known.turns < FULL or known.handled
                case _:
                    pass

    def _check_may_begin(self, notice: WorkerNotice, known: Known) -> None:
        due_at = known.due_at(self.rules)
        assert due_at is not None, f"begun though not at rest: {notice}"
        assert due_at <= notice.at, f"begun too early: {notice}"
        assert self.rules.find_resume_time(notice.at) is None, f"begun in quiet hours: {notice}"
        if len(self.workers) > 1:
            return
        if known.begun:
            pause = self.rules.backoff_s * 2 ** (len(known.begun) - 1)
            assert notice.at >= known.begun[-1] + timedelta(seconds=pause), f"no pause: {notice}"
        known.begun.append(notice.at)
        assert notice.attempt == len(known.begun) <= self.rules.attempts, notice

    def _check_nobody_waits(self) -> None:
        now, hourly = self.clock.now, self.rules.hourly_usd
        if hourly is not None:
            spent = PRICE * sum(at > now - SPEND_WINDOW for at in self.summarizer.spent)
            running = self.rules.concurrency * len(self.workers) * PRICE
            assert spent < hourly + running, f"{spent} in an hour"
        if hourly is not None or self.rules.find_resume_time(now) is not None:
            return
        for key, known in self.known.items():
            due_at = known.due_at(self.rules)
            if due_at is None or due_at > now or known.turns < FULL or known.begun:
                continue
            assert known.handled, f"{key} is due since {due_at}, and at {now} nobody has begun"

    def _summarizer(self, name: str, *_: object) -> Summarizer:
        return ExtractiveSummarizer() if name == "extractive" else self.summarizer

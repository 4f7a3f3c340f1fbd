"""Sessions at rest, and what workers said: what tests of idle work share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Semaphore
from typing import TypeVar

from clock import Clock

from cutbank import Block, IdleRules, SessionStore, Settings, StoredSession, Trigger
from cutbank.adapters.runtime.idle.due_sessions import DueSession
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind, WorkerNotice
from cutbank.adapters.settings.compaction_settings import CompactionSettings, PinSettings
from cutbank.domain.cached_property import cached_property
from cutbank.domain.compaction import MAIN_LINEAGE, derive_lineage_id
from cutbank.domain.event import Event as Recorded
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material

RULES = IdleRules(idle_time_s=300, least_utilization=0.02, concurrency=2, backoff_s=60)
SETTINGS = Settings(
    pins=PinSettings(first_prompt=False, kinds=()),
    compaction=CompactionSettings(settings={"keep_tokens": 4_000}),
)
WORDS = "the clay under the river bank slid in the night and nobody had seen it coming "


@dataclass
class Told:
    notices: list[WorkerNotice] = field(default_factory=list)

    def __call__(self, notice: WorkerNotice) -> None:
        self.notices.append(notice)

    def about(self, *about: NoticeKind) -> list[WorkerNotice]:
        return [notice for notice in self.notices if notice.about in about]

    def keys(self, about: NoticeKind) -> list[str | None]:
        return [notice.session for notice in self.about(about)]


def look(worker: IdleWorker) -> datetime:
    """Have the worker look and do what is due; return when it wants to look again."""
    next_at = worker.look()
    assert worker.wait(GUARD_S)
    return next_at


T = TypeVar("T")


@dataclass
class Idle:
    """A store with its clock, workers on it, and what they said."""

    store: SessionStore
    clock: Clock
    told: Told = field(default_factory=Told)
    workers: list[IdleWorker] = field(default_factory=list)

    @cached_property
    def session(self) -> StoredSession:
        return self.store.session("a session")

    def worker(self, rules: IdleRules | None = None, *, name: str | None = None) -> IdleWorker:
        worker = IdleWorker(self.store, rules or RULES, name=name, listeners=[self.told])
        self.workers.append(worker)
        return worker

    def pass_time(self, seconds: float) -> None:
        pass_time(self.clock, seconds)

    def find_due(self, worker: IdleWorker) -> DueSession:
        """What the worker finds due: one session."""
        self.store.read_models.catch_up()
        (due,) = worker.due.find_due(self.clock.now)
        return due


def talk(session: StoredSession) -> None:
    """Say enough for a compaction to gain by it: of 9,000 tokens, the newest 4,000 are kept."""
    blocks: list[Block] = []
    for turn in range(12):
        blocks.append(Block.user(f"{turn}: what of it? {WORDS * 40}"))
        blocks.append(Block.assistant(f"{turn}: {WORDS * 2}"))
    session.append(*blocks)


def pass_time(clock: Clock, seconds: float) -> None:
    clock.now += timedelta(seconds=seconds)


def decisions(session: StoredSession) -> Sequence[Recorded]:
    events = session.log.events
    stream = derive_lineage_id(session.namespace, session.key, MAIN_LINEAGE)
    rows = events.recorder.select_events(stream)
    return [events.mapper.to_domain_event(row) for row in rows]


def recorded(session: StoredSession, kind: type[T]) -> list[T]:
    return [event for event in decisions(session) if isinstance(event, kind)]


def request_by_another(
    session: StoredSession, worker: str = "another worker", lease_s: float = 600.0
) -> None:
    """What another worker records that has begun, and leaves behind if it is killed."""
    events = session.log.events
    compaction = events.open_compaction(session.namespace, session.key, MAIN_LINEAGE)
    compaction.request(
        trigger=Trigger.IDLE,
        policy="reserve-headroom",
        after=session.position,
        by=worker,
        lease_s=lease_s,
    )
    events.save(compaction)


PRICE = 0.25
GUARD_S = 60.0


class Held:
    """A summarizer with a price, whose first `holds` summaries wait until they are let go."""

    name = "held"

    def __init__(self, holds: int = 1) -> None:
        self.holds = holds
        self.calls = 0
        self._begun = Semaphore(0)
        self._gates: list[Event] = []

    def summarize(self, material: Material) -> Draft:
        self.calls += 1
        gate = Event()
        self._gates.append(gate)
        if self.calls > self.holds:
            gate.set()
        self._begun.release()
        assert gate.wait(GUARD_S)
        # What was written last is the shortest: to compact once more would gain by it.
        summary = ExtractiveSummarizer().summarize(material).text
        text = f"{summary}\n{WORDS * max(0, 60 - 20 * self.calls)}"
        return Draft(text=text, model="test/held", cost_usd=PRICE)

    def wait_for_call(self) -> None:
        assert self._begun.acquire(timeout=GUARD_S)

    def let_go(self, call: int = 0) -> None:
        self._gates[call].set()

    def let_all_go(self) -> None:
        self.holds = 0
        for gate in self._gates:
            gate.set()

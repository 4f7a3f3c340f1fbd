"""However workers, agents and time take turns: a rest is compacted once, what was paid is told."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, ClassVar

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from resting import GUARD_S, PRICE, RULES, WORDS, decisions, pass_time, recorded
from unpinned import UNPINNED

import cutbank
from cutbank import Block, CompactionOptions, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.due_sessions import DueSession
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.settings.settings import Settings
from cutbank.domain.compaction_events import (
    CompactBoundary,
    CompactionRejected,
    Summary,
    Trigger,
)
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.summaries.extractive import ExtractiveSummarizer
from cutbank.domain.summaries.summarizer import Draft, Material
from cutbank.domain.window import Plan, Window

LEASE_S = 60.0
WORKED = replace(
    RULES, least_utilization=0.02, lease_s=LEASE_S, concurrency=16, hourly_usd=None, attempts=4
)
KEYS = st.sampled_from(["s0", "s1"])
WORKERS = st.integers(0, 2)
WHICH = st.integers(0, 5)
MOMENTS = st.sampled_from([1.0, LEASE_S, 4 * RULES.backoff_s])
BEGINS = st.tuples(st.just("a_worker_begins_what_it_found"), WORKERS, WHICH)
STEPS = st.one_of(
    st.tuples(st.just("much_is_said_and_then_nothing"), KEYS),
    st.tuples(st.just("all_look_what_is_due")),
    st.tuples(st.just("time_passes"), MOMENTS),
    BEGINS,
    BEGINS,
    st.tuples(st.just("a_summary_is_done"), WHICH),
    st.tuples(st.just("a_summary_is_done"), WHICH),
    st.tuples(st.just("an_agent_compacts"), KEYS),
    st.tuples(st.just("a_worker_is_stopped_and_another_comes"), WORKERS),
)


@dataclass(frozen=True)
class Halves:
    """Whatever is in view, half of it can leave: to compact once more would always gain."""

    name: ClassVar[str] = "halves"

    def plan(self, window: Window) -> Plan | None:
        items = window.open_to_cut
        if len(items) < 2:
            return None
        return Plan(items[len(items) // 2].position, reason="half of it", summary_tokens=400)


class Stepwise:
    """A summariser with a price, each of whose summaries waits to be let go."""

    name = "stepwise"

    def __init__(self) -> None:
        self.gates: list[Event] = []
        self.on_call: Callable[[], None] = lambda: None

    def summarize(self, material: Material) -> Draft:
        gate = Event()
        self.gates.append(gate)
        self.on_call()
        assert gate.wait(GUARD_S)
        text = ExtractiveSummarizer().summarize(material).text
        return Draft(text=text, model="test/stepwise", cost_usd=PRICE)


class Leases:
    """One step at a time; between two of them everybody waits for a summary, or for nothing."""

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.clock = Clock()
        self.store = cutbank.open(":memory:", clock=self.clock, settings=UNPINNED)
        self.writer = Stepwise()
        self.patch.setattr(
            from_settings,
            "make_summary_chain",
            lambda _, __, first=None: SummaryChain(first or (self.writer,), retries=0),
        )
        self.patch.setattr(Settings, "make_policy", lambda *_: Halves())
        self.workers = [self._new_worker(number) for number in range(3)]
        self.found: dict[int, list[DueSession]] = {number: [] for number in range(3)}
        self.writing: list[tuple[int, Future[None], Event]] = []
        self.cancelled = 0
        self.before: dict[str, int] = {}
        """How many decisions there were when something was said last."""

    def _new_worker(self, number: int) -> IdleWorker:
        return IdleWorker(self.store, WORKED, name=f"w{number}")

    def _session(self, key: str) -> StoredSession:
        return self.store.session(key)

    def much_is_said_and_then_nothing(self, key: str) -> None:
        session = self._session(key)
        session.append(*(Block.user(f"{turn}: {WORDS * 60}") for turn in range(16)))
        self.before[key] = len(decisions(session))
        pass_time(self.clock, RULES.idle_time_s)

    def time_passes(self, seconds: float) -> None:
        pass_time(self.clock, seconds)

    def all_look_what_is_due(self) -> None:
        self.store.read_models.catch_up()
        for number, worker in enumerate(self.workers):
            self.found[number] = worker.due.find_due(self.clock.now, 10)

    def a_worker_begins_what_it_found(self, number: int, which: int) -> None:
        worker = self.workers[number]
        known = {one.due.id for one in worker.running_attempts}
        if found := [due for due in self.found[number] if due.id not in known]:
            due = found[which % len(found)]
            self._until_it_waits(number, lambda: _begun(worker, due, self.clock))

    def a_summary_is_done(self, which: int) -> None:
        if self.writing:
            number, work, gate = self.writing.pop(which % len(self.writing))
            self._until_it_waits(number, lambda: _let_go(gate, work))

    def an_agent_compacts(self, key: str) -> None:
        with suppress(NothingToCompactError):
            self._session(key).compact(
                options=CompactionOptions(summarizers=[ExtractiveSummarizer()])
            )

    def a_worker_is_stopped_and_another_comes(self, number: int) -> None:
        assert self.workers[number].stop(GUARD_S)
        self.cancelled += sum(one == number for one, _, _ in self.writing)
        self.writing = [one for one in self.writing if one[0] != number]
        self.workers[number] = self._new_worker(number)
        self.found[number] = []

    def _until_it_waits(self, number: int, step: Callable[[], Future[None]]) -> None:
        """Until the step's work is over, or waits for a summary."""
        waits = Event()
        known = len(self.writer.gates)
        self.writer.on_call = waits.set
        work = step()
        work.add_done_callback(lambda _: waits.set())
        assert waits.wait(GUARD_S)
        for gate in self.writer.gates[known:]:
            self.writing.append((number, work, gate))

    def _let_newest_go(self) -> None:
        self.writer.gates[-1].set()

    def no_rest_is_compacted_again(self) -> None:
        for key, before in self.before.items():
            since = decisions(self._session(key))[before:]
            boundaries = [event for event in since if isinstance(event, CompactBoundary)]
            assert Trigger.IDLE not in [boundary.trigger for boundary in boundaries[1:]], key

    def run(self, steps: list[tuple[Any, ...]]) -> None:
        try:
            for step, *arguments in steps:
                getattr(self, step)(*arguments)
                self.no_rest_is_compacted_again()
            self._come_to_rest()
        finally:
            for gate in self.writer.gates:
                gate.set()
            self.store.close()
            self.patch.undo()

    def _come_to_rest(self) -> None:
        while self.writing:
            number, work, gate = self.writing.pop()
            self._until_it_waits(number, lambda gate=gate, work=work: _let_go(gate, work))  # type: ignore[misc]
        self.no_rest_is_compacted_again()
        last = self._new_worker(9)
        self.writer.on_call = self._let_newest_go
        for _ in range(WORKED.attempts + 1):
            pass_time(self.clock, 3_600)
            last.look()
            assert last.wait(GUARD_S)
        assert last.stop(GUARD_S)
        self.no_rest_is_compacted_again()
        assert last.due.count_due(self.clock.now) == 0
        for session in self.store.sessions():
            assert session.log.compactor().decisions.read_state().requested == 0, session
        paid = sum(
            event.cost_usd == PRICE
            for session in self.store.sessions()
            for kind in (Summary, CompactionRejected)
            for event in _all(session, kind)
        )
        assert paid == len(self.writer.gates) - self.cancelled
        assert verify(self.store).violations == []


def _all(session: StoredSession, kind: type[Any]) -> list[Any]:
    return recorded(session, kind)


def _begun(worker: IdleWorker, due: DueSession, clock: Clock) -> "Future[None]":
    worker._begin_attempt(due, clock.now)
    found = [one.work for one in worker.running_attempts if one.due.id == due.id]
    return found[0] if found else _over()


def _let_go(gate: Event, work: "Future[None]") -> "Future[None]":
    gate.set()
    return work


def _over() -> "Future[None]":
    over: Future[None] = Future()
    over.set_result(None)
    return over


@pytest.mark.slow
@settings(max_examples=60)
@given(steps=st.lists(STEPS, min_size=8, max_size=30))
def test_whoever_s_turn_it_is_a_rest_is_compacted_once_and_no_lease_is_left(
    steps: list[tuple[Any, ...]],
) -> None:
    begins = [("much_is_said_and_then_nothing", "s0"), ("all_look_what_is_due",)]
    Leases().run([*begins, *steps])

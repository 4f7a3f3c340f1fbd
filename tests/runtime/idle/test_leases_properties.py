"""However workers, agents and time take turns: a rest is compacted once, what was paid is told."""

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from time import monotonic, sleep
from typing import Any, ClassVar

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from resting import GUARD_S, PRICE, RULES, WORDS, decisions, pass_time, recorded
from unpinned import UNPINNED

import cutbank
from cutbank import Block, CompactionOptions, Draft, Material, Plan, Settings, Window, verify
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.due_sessions import DueSession
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.domain.compaction_events import CompactBoundary, CompactionRejected, Summary, Trigger
from cutbank.domain.errors import NothingToCompactError
from cutbank.domain.summaries.extractive import ExtractiveSummarizer

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


class Leases:
    """One step at a time; between two of them everybody waits for a summary, or for nothing.

    It is the summarizer as well, each of whose summaries waits for its gate, and has a price.
    """

    name = "stepwise"

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.gates: list[Event] = []
        self.are_gates_open = False
        patch.setattr(
            from_settings,
            "make_summary_chain",
            lambda _, __, first=None: SummaryChain(first or (self,), retries=0),
        )
        patch.setattr(Settings, "make_policy", lambda *_: Halves())
        self.clock = Clock()
        self.store = cutbank.open(":memory:", clock=self.clock, settings=UNPINNED)
        self.workers = [self._new_worker(number) for number in range(3)]
        self.found: dict[int, list[DueSession]] = {number: [] for number in range(3)}
        self.writing: list[tuple[int, Future[None], Event]] = []
        self.cancelled = 0
        self.before: dict[str, int] = {}
        """How many decisions there were when something was said last."""

    def summarize(self, material: Material) -> Draft:
        gate = Event()
        self.gates.append(gate)
        assert self.are_gates_open or gate.wait(GUARD_S)
        text = ExtractiveSummarizer().summarize(material).text
        return Draft(text=text, model="test/stepwise", cost_usd=PRICE)

    def _new_worker(self, number: int) -> IdleWorker:
        return IdleWorker(self.store, WORKED, name=f"w{number}")

    def much_is_said_and_then_nothing(self, key: str) -> None:
        session = self.store.session(key)
        session.append(*(Block.user(f"{turn}: {WORDS * 60}") for turn in range(16)))
        self.before[key] = len(decisions(session))
        pass_time(self.clock, RULES.idle_time_s)

    def time_passes(self, seconds: float) -> None:
        pass_time(self.clock, seconds)

    def all_look_what_is_due(self) -> None:
        self.store.read_models.catch_up()
        for number, worker in enumerate(self.workers):
            self.found[number] = worker.due.find_due(self.clock.now)

    def a_worker_begins_what_it_found(self, number: int, which: int) -> None:
        worker = self.workers[number]
        at_work = {one.due.id for one in worker.running_attempts}
        if found := [due for due in self.found[number] if due.id not in at_work]:
            known, due = len(self.gates), found[which % len(found)]
            if work := worker._begin_attempt(due, self.clock.now):
                self._until_it_waits(number, work, known)

    def a_summary_is_done(self, which: int) -> None:
        if self.writing:
            number, work, gate = self.writing.pop(which % len(self.writing))
            known = len(self.gates)
            gate.set()
            self._until_it_waits(number, work, known)

    def an_agent_compacts(self, key: str) -> None:
        options = CompactionOptions(summarizers=[ExtractiveSummarizer()])
        with suppress(NothingToCompactError):
            self.store.session(key).compact(options=options)

    def a_worker_is_stopped_and_another_comes(self, number: int) -> None:
        assert self.workers[number].stop(GUARD_S)
        self.cancelled += sum(one == number for one, _, _ in self.writing)
        self.writing = [one for one in self.writing if one[0] != number]
        self.workers[number] = self._new_worker(number)
        self.found[number] = []

    def _until_it_waits(self, number: int, work: "Future[None]", known: int) -> None:
        """Wait until the work is over, or waits for another summary than those known."""
        deadline = monotonic() + GUARD_S
        while not work.done() and len(self.gates) == known:
            assert monotonic() < deadline
            sleep(0.001)
        self.writing += [(number, work, gate) for gate in self.gates[known:]]

    def no_rest_is_compacted_again(self) -> None:
        for key, before in self.before.items():
            since = decisions(self.store.session(key))[before:]
            boundaries = [event for event in since if isinstance(event, CompactBoundary)]
            assert Trigger.IDLE not in [boundary.trigger for boundary in boundaries[1:]], key

    def come_to_rest(self) -> None:
        while self.writing:
            self.a_summary_is_done(0)
        self.no_rest_is_compacted_again()
        self.are_gates_open = True
        last = self._new_worker(9)
        for _ in range(WORKED.attempts + 1):
            pass_time(self.clock, 3_600)
            last.look()
            assert last.wait(GUARD_S)
        assert last.stop(GUARD_S)
        self.no_rest_is_compacted_again()
        assert last.due.find_due(self.clock.now) == []
        paid = 0
        for session in self.store.sessions():
            assert session.log.compactor().decisions.read_state().requested == 0, session
            costs = [event.cost_usd for event in recorded(session, Summary)]
            costs += [event.cost_usd for event in recorded(session, CompactionRejected)]
            paid += costs.count(PRICE)
        assert paid == len(self.gates) - self.cancelled
        assert verify(self.store).violations == []


@pytest.mark.slow
@settings(max_examples=20)
@given(steps=st.lists(STEPS, min_size=8, max_size=30))
def test_whoever_s_turn_it_is_a_rest_is_compacted_once_and_no_lease_is_left(
    steps: list[tuple[Any, ...]],
) -> None:
    begins = [("much_is_said_and_then_nothing", "s0"), ("all_look_what_is_due",)]
    with pytest.MonkeyPatch.context() as patch:
        leases = Leases(patch)
        try:
            for step, *arguments in [*begins, *steps]:
                getattr(leases, step)(*arguments)
                leases.no_rest_is_compacted_again()
            leases.come_to_rest()
        finally:
            for gate in leases.gates:
                gate.set()
            leases.store.close()

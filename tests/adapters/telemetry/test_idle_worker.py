"""An idle worker at its work, as a program sees it that uses OpenTelemetry."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from resting import RULES, SETTINGS, SetClock, pass_time, talk
from telemetry_seen import Branch, Seen

import cutbank
from cutbank import SessionStore
from cutbank.adapters.runtime.idle.idle_worker import IdleWorker
from cutbank.adapters.runtime.telemetry.activation import record_notice


@pytest.fixture
def store(database: str, clock: SetClock) -> Iterator[SessionStore]:
    with cutbank.open(database, clock=clock, settings=SETTINGS) as store:
        yield store


@pytest.fixture
def worker(store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IdleWorker:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    worker = IdleWorker(store, RULES)
    worker.listeners = [record_notice]
    return worker


def test_what_it_does_is_measured_and_each_session_is_a_trace_of_its_own(
    store: SessionStore, worker: IdleWorker, clock: SetClock, seen: Seen
) -> None:
    for key in ("first", "second"):
        talk(store.session(key))
    pass_time(clock, RULES.idle_time_s)

    with seen.tracers.get_tracer("a scheduler").start_as_current_span("a look"):
        worker.look()
        worker.wait()
        worker.look()
    worker.stop()

    compaction: Branch = ("cutbank.compact", [("cutbank.summarise", [])])
    assert sorted(seen.tree()) == [("a look", []), compaction, compaction]
    assert {one["cutbank.trigger"] for one in seen.named("cutbank.compact")} == {"idle"}
    measured = seen.measured()
    assert measured["cutbank.idle.due"] == [({}, 0)]
    assert measured["cutbank.idle.looks"] == [({}, 2)]
    assert measured["cutbank.idle.running"] == [({}, 0)]
    assert measured["cutbank.idle.sessions"] == [({"cutbank.idle.outcome": "done"}, 2)]

"""Whatever fails around a worker is said in one line, and tried again, but not at once."""

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest
from databases import on_sqlite
from postgres_server import Server
from resting import (
    GUARD_S,
    RULES,
    Held,
    SetClock,
    Told,
    Working,
    pass_time,
    recorded,
    talk,
)
from unpinned import UNPINNED

import cutbank
from cutbank import SessionStore, StoredSession
from cutbank.adapters.analysis.verifier import verify
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.idle_worker import LONGEST_LOOK, IdleWorker
from cutbank.adapters.runtime.idle.notices import About, Notice
from cutbank.adapters.settings.settings import Settings
from cutbank.adapters.storage.sqlite.sqlite_recorder import SQLiteRecorder
from cutbank.domain.compaction_events import (
    CompactBoundary,
    CompactionFailed,
    CompactionRequested,
    Summary,
)
from cutbank.domain.errors import InvalidSettingError, SummariserFailedError
from cutbank.domain.summaries.summarizer import Draft, Material

REST = RULES.idle_time_s


def look(worker: IdleWorker) -> None:
    worker.look()
    assert worker.wait(GUARD_S)


def one_line(notice: Notice, *words: str) -> None:
    assert notice.reason is not None
    assert "\n" not in notice.reason
    assert all(word in notice.reason for word in words), notice.reason


# Storage


@pytest.fixture
def read_only(database: str, engine: str, clock: SetClock, tmp_path: Path) -> Iterator[str]:
    """Two sessions at rest, in a database that can only be read."""
    with cutbank.open(database, clock=clock, settings=UNPINNED) as store:
        talk(store.session("s0"))
        talk(store.session("s1"))
    if engine == "sqlite":
        yield f"{Path(database).as_uri()}?mode=ro"
    else:
        yield f"{database}&options=-c%20default_transaction_read_only%3Don"


def test_without_permission_to_write_nothing_is_done_and_nobody_is_pestered(
    read_only: str, told: Told, clock: SetClock
) -> None:
    pass_time(clock, REST)
    with cutbank.open(read_only, clock=clock, settings=UNPINNED) as store:
        worker = IdleWorker(store, RULES, heard=[told])
        before = [session.view().fingerprint for session in store.sessions()]
        ends = clock.now.timestamp() + 1_800
        looks = 0
        while clock.now.timestamp() < ends:
            next_at = worker.look()
            assert worker.wait(GUARD_S)
            looks += 1
            clock.now = max(clock.now, next_at)
        worker.stop()

        assert [session.view().fingerprint for session in store.sessions()] == before
        assert not any(recorded(session, CompactionRequested) for session in store.sessions())
    (away,) = told.about(About.DATABASE_AWAY)
    one_line(away, "is read-only")
    assert told.about(About.DATABASE_BACK, About.DONE) == []
    tried = told.about(About.FAILED)
    assert {notice.reason for notice in tried} == {away.reason}
    meanwhile = 1_800 / LONGEST_LOOK.total_seconds()
    assert len(tried) <= 2 + meanwhile + 6
    assert looks <= 2 * (meanwhile + 6)


@pytest.fixture
def own_server() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


def test_a_server_that_goes_away_and_returns_is_waited_for(
    own_server: Server,
    told: Told,
    held: Held,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(datastore, "RECONNECT_SECONDS", 0.1)
    rules = replace(RULES, lease_s=60.0, hourly_usd=None)
    with cutbank.open(own_server.address, clock=clock, settings=UNPINNED) as store:
        session = store.session("s")
        talk(session)
        worker = IdleWorker(store, rules, heard=[told])
        pass_time(clock, REST)
        worker.look()
        held.wait_for_call()
        own_server.tell("immediate")
        held.let_go()
        assert worker.wait(GUARD_S)
        for _ in range(3):
            clock.now = worker.look()

        own_server.tell("start")
        pass_time(clock, 60)
        look(worker)
        look(worker)
        worker.stop()

        assert len(told.about(About.DATABASE_AWAY)) == 1
        one_line(told.about(About.DATABASE_AWAY)[0], "cannot be reached")
        assert len(told.about(About.DATABASE_BACK)) == 1
        assert told.keys(About.DONE) == ["s"]
        assert len(recorded(session, CompactBoundary)) == 1
        assert verify(store).violations == []


@on_sqlite
def test_a_file_that_fails_for_a_while_is_waited_for(
    session: StoredSession,
    *,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk(session)
    worker = working()
    pass_time(clock, REST)
    recorder = session.store.events.recorder
    assert isinstance(recorder, SQLiteRecorder)
    with monkeypatch.context() as patch:

        def fails(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr(recorder, "insert_events", fails)
        look(worker)
        assert told.about(About.DONE) == []
    clock.now += LONGEST_LOOK
    look(worker)

    (away,) = told.about(About.DATABASE_AWAY)
    one_line(away, "the disk reports an error")
    assert len(told.about(About.DATABASE_BACK)) == 1
    assert told.keys(About.DONE) == [session.key]
    assert [notice.attempt for notice in told.about(About.BEGAN)] == [1, 1]


# What belongs to users


class Breaks:
    """A policy with a mistake."""

    name = "breaks"

    def plan(self, window: object) -> object:
        raise ZeroDivisionError("division by zero")


def test_a_policy_that_raises_is_tried_again_with_pauses_and_given_up(
    session: StoredSession,
    *,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk(session)
    pass_time(clock, REST)
    worker = working()
    monkeypatch.setattr(Settings, "policy_with", lambda *_: Breaks())
    moments = []
    for _ in range(100):
        begun = len(told.about(About.BEGAN))
        look(worker)
        if len(told.about(About.BEGAN)) > begun:
            moments.append(clock.now)
        pass_time(clock, 10)

    failed = told.about(About.FAILED)
    assert [notice.attempt for notice in failed] == [1, 2, 3]
    assert {notice.reason for notice in failed} == {"division by zero"}
    assert [notice.next_at is None for notice in failed] == [False, False, True]
    pauses = [(b - a).total_seconds() for a, b in pairwise(moments)]
    assert len(pauses) == 2
    assert RULES.backoff_s <= pauses[0] < 2 * RULES.backoff_s <= pauses[1] < 3 * RULES.backoff_s
    assert len(recorded(session, CompactionFailed)) == 3
    assert recorded(session, CompactionRequested) == []


@pytest.mark.parametrize("is_stuck", [False, True], ids=["fails", "hangs"])
def test_a_summariser_that_brings_nothing_is_tried_again_and_replaced_at_the_last_attempt(
    session: StoredSession,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_stuck: bool,
) -> None:
    class Useless:
        name = "useless"

        async def summarise(self, material: Material) -> Draft:
            if is_stuck:
                await asyncio.Event().wait()
            raise SummariserFailedError("the provider is away", is_transient=False)

    chain = SummaryChain((Useless(),), retries=0, time_limit_s=1.0 if is_stuck else 60.0)
    monkeypatch.setattr(by_settings, "chain_by", lambda *_: chain)
    talk(session)
    pass_time(clock, REST)
    worker = working()
    for _ in range(RULES.attempts):
        look(worker)
        look(worker)
        pass_time(clock, 5 * RULES.backoff_s)

    said = "took longer than its 1 seconds" if is_stuck else "the provider is away"
    for failed in told.about(About.FAILED):
        one_line(failed, "useless: ", said)
    assert [notice.attempt for notice in told.about(About.FAILED)] == [1, 2]
    assert told.keys(About.DONE) == [session.key]
    # Whoever writes by rules writes within the same time, or is replaced in turn.
    (summary,) = recorded(session, Summary)
    assert summary.summariser != "useless"
    assert session.compactor().decisions.state().requested == 0


def test_settings_that_ask_one_session_for_what_cannot_be_hold_up_no_other(
    store: SessionStore,
    working: Working,
    told: Told,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in ("first", "second", "third"):
        talk(store.session(key))
    is_known = False

    def chain_by(*_: object) -> SummaryChain:
        if told.about(About.BEGAN)[-1].session == "first" and not is_known:
            raise InvalidSettingError("nobody says which model")
        return SummaryChain()

    pass_time(clock, REST)
    monkeypatch.setattr(by_settings, "chain_by", chain_by)
    worker = working(replace(RULES, concurrency=1))
    for _ in range(20):
        look(worker)
        pass_time(clock, 1)

    assert [notice.session for notice in told.about(About.DONE)] == ["second", "third"]
    assert [notice.session for notice in told.about(About.FAILED)] == ["first"]
    assert told.about(About.DATABASE_AWAY) == []

    is_known = True
    worker.go_by(worker.rules)
    look(worker)
    assert told.keys(About.DONE)[-1] == "first"
    assert told.about(About.BEGAN)[-1].attempt == 1  # it was not the session's fault


# Schedulers


def test_a_worker_has_stopped_when_it_uses_its_store_no_more(
    store: SessionStore, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is closed under a look may take the whole process along."""
    worker = working()
    looks, goes_on = Event(), Event()

    def catch_up(**_: object) -> int:
        looks.set()
        assert goes_on.wait(GUARD_S)
        return 0

    monkeypatch.setattr(store.read_models, "catch_up", catch_up)
    with ThreadPoolExecutor(1) as another:
        look = another.submit(worker.look)
        assert looks.wait(GUARD_S)
        assert not worker.stop(0.05)
        goes_on.set()
        assert worker.stop(GUARD_S)
        look.result(GUARD_S)

    looks.clear()
    worker.look()
    assert not looks.is_set()


def test_a_second_scheduler_of_one_store_is_refused_in_one_line(store: SessionStore) -> None:
    first = store.start_scheduler(RULES)
    with pytest.raises(InvalidSettingError, match="is running already in this process") as raised:
        store.start_scheduler(RULES)
    assert "\n" not in str(raised.value)

    assert first.stop(GUARD_S)
    assert store.start_scheduler(RULES).stop(GUARD_S)


def test_a_scheduler_whose_loop_was_closed_does_no_harm_and_can_be_started_again(
    session: StoredSession, store: SessionStore, told: Told, held: Held, clock: SetClock
) -> None:
    rules = replace(RULES, hourly_usd=None)
    talk(session)
    pass_time(clock, REST)

    async def begin() -> None:
        store.start_scheduler(rules, kind="asyncio", heard=[told])
        await asyncio.to_thread(held.wait_for_call)

    asyncio.run(begin())
    is_done = Event()
    again = store.start_scheduler(
        rules, heard=[told, lambda notice: is_done.set() if notice.about is About.DONE else None]
    )

    assert is_done.wait(GUARD_S)
    assert again.stop(GUARD_S)
    assert len(told.about(About.STOPPED)) == 2
    (failed,) = recorded(session, CompactionFailed)
    assert failed.cancelled
    assert len(recorded(session, CompactBoundary)) == 1
    assert verify(store).violations == []

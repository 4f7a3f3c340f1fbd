"""Whatever fails around a worker is said in one line, and tried again, but not at once."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from clock import Clock
from databases import each_database
from resting import GUARD_S, RULES, SETTINGS, Idle, look, recorded, talk

import cutbank
from cutbank import InvalidSettingError
from cutbank.adapters.runtime.compaction import from_settings
from cutbank.adapters.runtime.compaction.summary_chain import SummaryChain
from cutbank.adapters.runtime.idle.due_sessions import MISCONFIGURED_PAUSE
from cutbank.adapters.runtime.idle.idle_worker import MAX_LOOK_INTERVAL, IdleWorker
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.adapters.storage.databases.sqlite_recorder import SQLiteRecorder
from cutbank.domain.compaction_events import CompactionRequested

REST = RULES.idle_time_s


@pytest.fixture
def read_only(database: str, engine: str, clock: Clock, tmp_path: Path) -> Iterator[str]:
    """Two sessions at rest, in a database that can only be read."""
    with cutbank.open(database, clock=clock, settings=SETTINGS) as store:
        talk(store.session("s0"))
        talk(store.session("s1"))
    if engine == "sqlite":
        yield f"{Path(database).as_uri()}?mode=ro"
    else:
        yield f"{database}&options=-c%20default_transaction_read_only%3Don"


@each_database
def test_without_permission_to_write_nothing_is_done_and_nobody_is_pestered(
    idle: Idle, read_only: str
) -> None:
    idle.pass_time(REST)
    with cutbank.open(read_only, clock=idle.clock, settings=SETTINGS) as store:
        worker = IdleWorker(store, RULES, listeners=[idle.told])
        ends, looks = idle.clock.now + timedelta(seconds=1_800), 0
        while idle.clock.now < ends:
            idle.clock.now = max(idle.clock.now, look(worker))
            looks += 1
        worker.stop()

        assert not any(recorded(session, CompactionRequested) for session in store.sessions())
    (away,) = idle.told.about(NoticeKind.DATABASE_AWAY)
    assert "is read-only" in str(away.reason)
    assert "\n" not in str(away.reason)
    assert idle.told.about(NoticeKind.DATABASE_BACK, NoticeKind.DONE) == []
    tried = idle.told.about(NoticeKind.FAILED)
    assert {notice.reason for notice in tried} == {away.reason}
    meanwhile = 1_800 / MAX_LOOK_INTERVAL.total_seconds()
    assert len(tried) <= 2 + meanwhile + 6
    assert looks <= 2 * (meanwhile + 6)


def test_a_file_that_fails_for_a_while_is_waited_for(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(idle.session)
    worker = idle.worker()
    idle.pass_time(REST)
    recorder = idle.session.log.events.recorder
    assert isinstance(recorder, SQLiteRecorder)
    with monkeypatch.context() as patch:

        def fails(*_: object, **__: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr(recorder, "insert_events", fails)
        look(worker)
        assert idle.told.about(NoticeKind.DONE) == []
    idle.clock.now += MAX_LOOK_INTERVAL
    look(worker)

    (away,) = idle.told.about(NoticeKind.DATABASE_AWAY)
    assert "the disk reports an error" in str(away.reason)
    assert len(idle.told.about(NoticeKind.DATABASE_BACK)) == 1
    assert idle.told.keys(NoticeKind.DONE) == [idle.session.key]
    assert [notice.attempt for notice in idle.told.about(NoticeKind.BEGAN)] == [1, 1]


def test_settings_that_ask_one_session_for_what_cannot_be_hold_up_no_other(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("first", "second", "third"):
        talk(idle.store.session(key))
    is_known = False

    def chain_by(*_: object) -> SummaryChain:
        if idle.told.about(NoticeKind.BEGAN)[-1].session == "first" and not is_known:
            raise InvalidSettingError("nobody says which model")
        return SummaryChain()

    idle.pass_time(REST)
    monkeypatch.setattr(from_settings, "make_summary_chain", chain_by)
    worker = idle.worker(replace(RULES, concurrency=1))
    for _ in range(20):
        look(worker)
        idle.pass_time(1)

    assert [notice.session for notice in idle.told.about(NoticeKind.DONE)] == ["second", "third"]
    assert [notice.session for notice in idle.told.about(NoticeKind.FAILED)] == ["first"]
    assert idle.told.about(NoticeKind.DATABASE_AWAY) == []

    is_known = True
    idle.pass_time(MISCONFIGURED_PAUSE.total_seconds())
    look(worker)
    assert idle.told.keys(NoticeKind.DONE)[-1] == "first"
    assert idle.told.about(NoticeKind.BEGAN)[-1].attempt == 1  # it was not the session's fault


def test_a_worker_has_stopped_when_it_uses_its_store_no_more(
    idle: Idle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that is closed under a look may take the whole process along."""
    worker = idle.worker()
    looks, goes_on = Event(), Event()

    def catch_up(**_: object) -> int:
        looks.set()
        assert goes_on.wait(GUARD_S)
        return 0

    monkeypatch.setattr(idle.store.read_models, "catch_up", catch_up)
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

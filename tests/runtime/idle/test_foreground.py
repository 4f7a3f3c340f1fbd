"""A worker process does what is due, is seen to live, and ends as it is told to."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from fcntl import LOCK_EX, flock
from itertools import pairwise
from pathlib import Path
from select import select
from time import monotonic, sleep
from typing import Any

import pytest
from databases import each_database
from idle_processes import AT_ONCE, LONG, IdleProcess, idling
from processes import Killed
from resting import WORDS, recorded, talk

import cutbank
from cutbank import Block, StorageError, verify
from cutbank.adapters.runtime.idle import foreground, idle_worker
from cutbank.adapters.runtime.idle.foreground import STUCK_AFTER_S, Health
from cutbank.adapters.runtime.idle.idle_status import IdleStatus
from cutbank.adapters.runtime.idle.notices import NoticeKind
from cutbank.domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionRequested,
)


@pytest.fixture
def waiting(database: str) -> str:
    """A database in which two sessions are due."""
    with cutbank.open(database) as store:
        for key in ("one", "two"):
            talk(store.session(key))
    return database


def stopped(worker: IdleProcess, by: signal.Signals = signal.SIGTERM) -> dict[str, Any]:
    """End the process; return the document that it wrote."""
    worker.process.send_signal(by)
    code, document = worker.ended()
    assert code == 0
    assert document is not None
    return document


def status(database: str) -> IdleStatus:
    with cutbank.open(database) as store:
        return cutbank.get_idle_status(store)


Held = tuple[Path, int]
"""A settings file with a program that never ends, and what to read to know that it runs."""


@pytest.fixture
def held(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Held]:
    """A summarizer that never ends, or what the test's parameter says."""
    written = getattr(request, "param", "idle.concurrency = 1\n[summary]\nchain = ['command']\n")
    pipe, lock, file = tmp_path / "at it", tmp_path / "lock", tmp_path / "settings.toml"
    os.mkfifo(pipe)
    code = (
        f"import fcntl; open({str(pipe)!r}, 'w').write('x'); "
        f"fcntl.flock(open({str(lock)!r}), fcntl.LOCK_SH)"
    )
    command = f"command = ['{sys.executable}', '-c', \"{code}\"]\n"
    file.write_text(written + command, encoding="utf-8")
    # Whoever may write as well waits for the first byte, and not for a writer.
    read = os.open(pipe, os.O_RDWR)
    # Nobody is left behind by the test: whoever still hangs has the lock at its end.
    with lock.open("w") as holding:
        flock(holding, LOCK_EX)
        yield file, read
    os.close(read)


def is_at_it(read: int) -> bool:
    """Wait until something was written there."""
    found, _, _ = select([read], [], [], LONG)
    return bool(found) and os.read(read, 1) == b"x"


def test_a_signal_cancels_what_runs_and_gives_its_lease_up(waiting: str, held: Held) -> None:
    settings, at_it = held
    with idling(waiting, "--settings", settings) as worker:
        worker.until(NoticeKind.BEGAN)
        assert is_at_it(at_it)
        assert len(status(waiting).running) == 1
        stopped(worker, signal.SIGINT)

    assert (status(waiting).running, status(waiting).failing) == ([], 0)


@pytest.mark.parametrize(
    "held", ["[[hooks.commands]]\non = ['pre_compact']\ntime_limit = 600\n"], indirect=True
)
def test_a_second_signal_ends_the_process_though_no_cancellation_reaches_what_runs(
    waiting: str, held: Held
) -> None:
    settings, at_it = held
    with idling(waiting, "--settings", settings, "--grace", "600") as worker:
        worker.until(NoticeKind.BEGAN)
        assert is_at_it(at_it)
        worker.process.send_signal(signal.SIGTERM)
        worker.until(NoticeKind.STOPPING)
        worker.process.send_signal(signal.SIGTERM)
        code, document = worker.ended()

    assert (code, document) == (128 + signal.SIGTERM, None)


def test_the_health_file_says_what_the_worker_does_and_what_trouble_there_is(
    waiting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AT_ONCE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(foreground, "BEAT_INTERVAL_S", 0.05)
    file, deadline, beat = tmp_path / "h.json", monotonic() + LONG, Health.beat
    read: list[dict[str, Any]] = [{}]
    with cutbank.open(waiting) as store:
        catch_up = store.read_models.catch_up

        def beat_and_read(health: Health, progress: object, state: dict[str, Any]) -> bool:
            assert monotonic() < deadline, read[-1]
            assert beat(health, progress, state)
            read.append(json.loads(file.read_text()))
            if read[-1]["trouble"] == "the disk is full":
                monkeypatch.setattr(store.read_models, "catch_up", catch_up)
            elif read[-1]["done"] == 2 and read[-1]["running"] == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return True

        def fails(**_: object) -> int:
            raise StorageError("the disk is full")

        monkeypatch.setattr(Health, "beat", beat_and_read)
        monkeypatch.setattr(idle_worker, "MAX_LOOK_INTERVAL", timedelta(seconds=1))
        monkeypatch.setattr(store.read_models, "catch_up", fails)
        ended = foreground.run_worker(store, health=file)

    assert (ended.counts["done"], ended.trouble, ended.has_succeeded) == (2, None, True)
    assert "the disk is full" in {said.get("trouble") for said in read}
    assert (read[-1]["pid"], read[-1]["failed"]) == (os.getpid(), 0)
    assert read[-1]["looked_at"] <= read[-1]["next_look"]
    assert list(tmp_path.glob("*h.json*")) == []


def test_a_worker_that_makes_no_progress_lets_its_health_file_grow_old(tmp_path: Path) -> None:
    now = [0.0]
    health = Health(tmp_path / "h", "a database", lambda: now[0])

    said = {"looked_at": None}
    assert health.beat(1, said)
    now[0] += STUCK_AFTER_S
    assert health.beat(1, said)
    now[0] += 1
    assert not health.beat(1, {**said, "late": True})
    assert "late" not in json.loads((tmp_path / "h").read_text())
    assert health.beat(2, {**said, "late": True})


@pytest.mark.slow
def test_the_service_manager_hears_that_the_worker_is_ready_lives_and_stops(
    waiting: str, tmp_path: Path
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(60)
        with idling(waiting, env={"NOTIFY_SOCKET": str(address)}) as worker:
            heard = set[bytes]()
            while b"READY=1" not in heard:
                heard |= set(manager.recv(100).splitlines())
            worker.process.send_signal(signal.SIGTERM)
            while b"STOPPING=1" not in heard:
                heard |= set(manager.recv(100).splitlines())

    assert heard == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


@each_database
@pytest.mark.slow
def test_four_workers_of_which_one_is_killed_compact_each_session_once(
    database: str, held: Held, tmp_path: Path
) -> None:
    with cutbank.open(database) as store:
        for number in range(8):
            turns = (f"{turn}: {WORDS * 80}" for turn in range(6))
            store.session(f"s{number}").append(*map(Block.user, turns))
    settings, at_it = held
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    short = {**env, "CUTBANK_IDLE_LEASE": "3"}

    with ExitStack() as running:
        dying = running.enter_context(idling(database, "--settings", settings, env=short))
        assert is_at_it(at_it)
        one_at_once = {**env, "CUTBANK_IDLE_CONCURRENCY": "1"}
        workers = [running.enter_context(idling(database, env=one_at_once)) for _ in range(3)]
        deadline = monotonic() + LONG
        # On a busy machine one worker may do all that is due before another has started, and a
        # signal that comes before that would kill it.
        for worker in workers:
            worker.until(NoticeKind.STARTED)
        while status(database).done < 1:
            assert monotonic() < deadline
            sleep(0.1)
        dying.process.kill()
        assert dying.process.wait(LONG) == -signal.SIGKILL
        Killed.count += 1
        while status(database).done < 8:
            assert monotonic() < deadline
            sleep(0.1)
        documents = [stopped(worker) for worker in workers]

    assert sum(document["done"] for document in documents) == 8
    assert not any(document["lost"] or document["failed"] for document in documents)
    requests = 0
    with cutbank.open(database) as store:
        for session in store.sessions():
            assert len(recorded(session, CompactBoundary)) == 1, session
            assert len(recorded(session, BoundaryActivated)) == 1, session
            assert session.log.compactor().decisions.read_state().requested == 0, session
            requested = recorded(session, CompactionRequested)
            requests += len(requested)
            for before, after in pairwise(requested):
                # Nobody takes over before the lease of whoever was at it has run out.
                lease = timedelta(seconds=before.lease_s or 0)
                assert after.timestamp >= before.timestamp + lease, session
        assert requests == 8 + 1
        assert verify(store).violations == []

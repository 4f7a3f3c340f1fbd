"""A worker process does what is due, is seen to live, and ends as it is told to."""

import os
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from fcntl import LOCK_EX, flock
from pathlib import Path
from select import select

import pytest
from idle_processes import LONG, idling
from resting import talk

import cutbank
from cutbank.adapters.runtime.idle.idle_status import IdleStatus
from cutbank.adapters.runtime.idle.notices import NoticeKind


@pytest.fixture
def waiting(database: str) -> str:
    """A database in which two sessions are due."""
    with cutbank.open(database) as store:
        for key in ("one", "two"):
            talk(store.session(key))
    return database


def status(database: str) -> IdleStatus:
    with cutbank.open(database) as store:
        return cutbank.get_idle_status(store)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A settings file whose summariser never ends, and what to read to know that it is at it."""
    pipe = tmp_path / "at it"
    os.mkfifo(pipe)
    code = f"import signal; open({str(pipe)!r}, 'w').write('x'); signal.pause()"
    file = tmp_path / "settings.toml"
    file.write_text(
        f"[summary]\nchain = ['command']\ncommand = ['{sys.executable}', '-c', \"{code}\"]\n"
        "[idle]\nconcurrency = 1\n",
        encoding="utf-8",
    )
    # Whoever may write as well waits for the first byte, and not for a writer.
    read = os.open(pipe, os.O_RDWR)
    yield file, read
    os.close(read)


@pytest.fixture
def hanging_hook(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Settings with a hook that no cancellation reaches, and what to read to know that it hangs."""
    pipe, lock = tmp_path / "at it", tmp_path / "lock"
    os.mkfifo(pipe)
    code = (
        f"import fcntl; open({str(pipe)!r}, 'w').write('x'); "
        f"fcntl.flock(open({str(lock)!r}), fcntl.LOCK_SH)"
    )
    file = tmp_path / "settings.toml"
    file.write_text(
        f"[[hooks.commands]]\non = ['pre_compact']\ntime_limit = 600\n"
        f"command = ['{sys.executable}', '-c', \"{code}\"]\n",
        encoding="utf-8",
    )
    read = os.open(pipe, os.O_RDWR)
    # Nobody is left behind by the test: whoever still hangs has the lock at its end.
    with lock.open("w") as held:
        flock(held, LOCK_EX)
        yield file, read
    os.close(read)


def test_what_is_due_is_compacted_until_the_process_is_told_to_stop(waiting: str) -> None:
    with idling(waiting) as worker:
        done = {worker.until(NoticeKind.DONE)["session"], worker.until(NoticeKind.DONE)["session"]}
        worker.process.send_signal(signal.SIGTERM)
        code, document = worker.ended()

    assert done == {"one", "two"}
    assert code == 0
    assert document is not None
    assert (document["done"], document["failed"], document["trouble"]) == (2, 0, None)
    assert worker.abouts()[-2:] == [NoticeKind.STOPPING, NoticeKind.STOPPED]
    assert status(waiting).done == 2


def test_a_signal_cancels_what_runs_and_gives_its_lease_up(
    waiting: str, held: tuple[Path, int]
) -> None:
    settings, at_it = held
    with idling(waiting, "--settings", settings) as worker:
        worker.until(NoticeKind.BEGAN)
        assert is_at_it(at_it)
        assert len(status(waiting).running) == 1
        worker.process.send_signal(signal.SIGINT)
        code, _ = worker.ended()

    assert code == 0
    assert status(waiting).running == ()
    assert status(waiting).failing == 0


def test_a_second_signal_ends_the_process_at_once(
    waiting: str, hanging_hook: tuple[Path, int]
) -> None:
    settings, at_it = hanging_hook
    with idling(waiting, "--settings", settings, "--grace", "600") as worker:
        worker.until(NoticeKind.BEGAN)
        assert is_at_it(at_it)
        worker.process.send_signal(signal.SIGTERM)
        worker.until(NoticeKind.STOPPING)
        worker.process.send_signal(signal.SIGTERM)
        code, document = worker.ended()

    assert (code, document) == (128 + signal.SIGTERM, None)


def is_at_it(read: int) -> bool:
    """Wait until something was written there."""
    found, _, _ = select([read], [], [], LONG)
    return bool(found) and os.read(read, 1) == b"x"


@pytest.mark.slow
def test_the_health_file_says_what_the_worker_does_and_is_gone_at_a_clean_end(
    waiting: str, tmp_path: Path
) -> None:
    file = tmp_path / "health.json"
    with idling(waiting, "--health", file) as worker:
        said = worker.until_file(file, lambda said: said["done"] == 2 and not said["running"])
        later = worker.until_file(file, lambda later: later["at"] > said["at"])
        worker.process.send_signal(signal.SIGTERM)
        code, _ = worker.ended()

    assert code == 0
    assert said["pid"] == worker.process.pid
    assert said["failed"] == 0
    assert said["trouble"] is None
    assert later["looked_at"] <= later["next_look"]
    assert list(tmp_path.glob("*health*")) == []


def test_the_health_file_says_what_trouble_there_is(waiting: str, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    with idling(waiting, "--health", file, env={"CUTBANK_IDLE_TIME": "9999"}) as worker:
        worker.until(NoticeKind.LOOKED)
        read_models = tmp_path / "test.read.db"
        read_models.rename(tmp_path / "away.db")
        with closing(sqlite3.connect(read_models)) as other:
            other.execute("CREATE TABLE of_others (n)")
        worker.process.send_signal(signal.SIGHUP)
        said = worker.until_file(file, lambda said: bool(said["trouble"]))
        (tmp_path / "away.db").rename(read_models)
        healed = worker.until_file(file, lambda said: not said["trouble"])

    assert "is another program's database" in said["trouble"]
    assert healed["pid"] == said["pid"]


@pytest.mark.slow
def test_the_service_manager_hears_that_the_worker_is_ready_lives_and_stops(
    waiting: str, tmp_path: Path
) -> None:
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(60)
        with idling(waiting, env={"NOTIFY_SOCKET": str(address)}) as worker:
            heard = {manager.recv(100) for _ in range(4)}
            worker.process.send_signal(signal.SIGTERM)
            while b"STOPPING=1" not in heard:
                heard.add(manager.recv(100))

    assert heard == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


@pytest.mark.slow
def test_several_processes_share_the_work_and_end_together(waiting: str, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    with idling(waiting, "--processes", "2", "--health", file) as crew:
        done = {crew.until(NoticeKind.DONE)["session"], crew.until(NoticeKind.DONE)["session"]}
        said = crew.until_file(file, lambda said: all(said["workers"]))
        crew.process.send_signal(signal.SIGTERM)
        code, document = crew.ended()

    assert done == {"one", "two"}
    assert code == 0
    assert document is not None
    assert len(document["workers"]) == 2
    assert document["done"] == 2
    assert len({worker["pid"] for worker in said["workers"]}) == 2
    assert not file.exists()


@pytest.mark.slow
def test_a_process_that_dies_is_started_again(waiting: str, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    with idling(waiting, "--processes", "2", "--health", file) as crew:
        first = crew.until_file(file, lambda said: all(said["workers"]))
        os.kill(first["workers"][0]["pid"], signal.SIGKILL)
        later = crew.until_file(file, lambda said: said["restarts"] == 1 and all(said["workers"]))
        crew.process.send_signal(signal.SIGTERM)
        code, _ = crew.ended()

    assert code == 0
    assert later["workers"][0]["pid"] != first["workers"][0]["pid"]
    assert later["workers"][1]["pid"] == first["workers"][1]["pid"]

"""A disk that is full, read-only or broken: one line says so, nothing is lost, and it goes on."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from acknowledged import Acknowledged
from faulty import one_line, texts
from processes import Ended, Processes, processes

import cutbank
from cutbank import Block, verify
from cutbank.adapters.storage.databases import sqlite_datastore

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are POSIX's here")

GONE = "log.db was moved, deleted or replaced while it was open"
SHIM = Path(__file__).parents[1] / "support" / "faulty_disk.c"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes whose disk fails when they tell it to."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("a failing disk is preloaded: that needs Linux and a C compiler")
    library = tmp_path_factory.mktemp("shim") / "faulty_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    with processes({"LD_PRELOAD": str(library)}) as run:
        yield run


def check(path: Path, ended: Ended) -> None:
    """Nothing that was acknowledged is missing or twice, and it goes on."""
    acknowledged = Acknowledged()
    acknowledged.take(ended)
    with cutbank.open(path) as store:
        acknowledged.check(store)
        session = store.session("session")
        assert session.append(Block.user("goes on")).last == session.position
        assert verify(store).is_ok


def refusals(ended: Ended) -> list[str]:
    assert ended.codes == [0], ended
    assert {name for name, *_ in ended.told("refused")} <= {"StorageError"}
    return [" ".join(words) for _, *words in ended.told("refused")]


# Broken


@pytest.mark.parametrize(
    ("kind", "error", "words", "lasting"),
    [
        ("write", errno.EIO, "the disk reports an error", False),
        ("write", errno.ENOSPC, "the disk is full", True),
        ("sync", errno.EIO, "the disk reports an error", True),
        # SQLite reports both in one word.
        ("read", errno.EIO, "is damaged, or its disk is", False),
    ],
    ids=["write once", "full", "sync", "read once"],
)
def test_a_call_that_fails_is_told_in_one_line_and_loses_nothing(
    tmp_path: Path, faulty: Processes, kind: str, error: int, words: str, *, lasting: bool
) -> None:
    random = Random(f"{kind} {error} {lasting}")  # noqa: S311 - nothing here is secret
    told = 0

    for number in range(3):
        path = tmp_path / f"{number}.db"
        nth = random.randint(1, 30 if kind != "read" else 8)
        ended = faulty.left_alone("on_a_faulty_disk", path, kind, nth, error, lasting)

        for line in refusals(ended):
            assert path.name in line
            assert words in line
            told += 1
        check(path, ended)

    assert told > 0


@pytest.mark.parametrize("kind", ["write", "sync", "remove", "cut"])
@pytest.mark.parametrize("most", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_kill_in_the_middle_of_a_call_loses_nothing(
    tmp_path: Path, faulty: Processes, kind: str, most: int
) -> None:
    """Half of what was to be written is written; the log is begun or ended halfway."""
    random = Random(kind)  # noqa: S311 - nothing here is secret
    kills = 0
    path, acknowledged = tmp_path / "log.db", Acknowledged()

    for number in range(most):
        if number % 10 == 0:  # another database, as all that one holds is checked after each kill
            path, acknowledged = tmp_path / str(number) / "log.db", Acknowledged()
            path.parent.mkdir()
        first = max(0, acknowledged.turns - 1)
        nth = random.randint(1, {"write": 60, "sync": 40}.get(kind, 8))
        ended = faulty.left_alone("on_a_disk_that_kills", path, kind, nth, first)
        kills += ended.was_killed
        assert ended.was_killed or ended.codes == [0], ended

        acknowledged.take(ended)
        with cutbank.open(path) as store:
            acknowledged.check(store)
        assert {file.name for file in path.parent.iterdir()} <= {"log.db", "log.db-journal"}

    assert kills > 0 or kind == "cut"


# Full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True)  # noqa: S607


def test_a_full_file_system_is_told_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    path, room = small_disk / "log.db", small_disk / "something else"
    room.write_bytes(b"x" * 300_000)
    said: list[str] = []
    with cutbank.open(path) as store:
        session = store.session("session")
        with one_line("log.db cannot grow, the disk is full", "nothing that was stored is lost"):
            while True:
                text = f"{len(said)} " * 3_000
                session.append(Block.user(text))
                said.append(text)
        assert texts(session) == said
        with one_line("the disk is full"):
            store.backup(small_disk / "backup.db")
        assert not (small_disk / "backup.db").exists()

    # There is no room to put it to rest either; and it can be read.
    with cutbank.open(path) as store:
        assert texts(store.session("session")) == said

    room.unlink()
    with cutbank.open(path) as store:
        session = store.session("session")
        session.append(Block.user("there is room"))
        assert texts(session) == [*said, "there is room"]
        assert verify(store).is_ok
    assert [file.name for file in small_disk.iterdir()] == ["log.db"]


# Gone


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_file_that_is_deleted_while_it_is_open_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    """Before a single event, the file is looked for now and then; before others, each time."""
    path, now = tmp_path / "log.db", [1_000.0]
    monkeypatch.setattr(sqlite_datastore, "monotonic", lambda: now[0])
    store = cutbank.open(path)
    session = store.session("session")
    for word in ("words", "more"):
        session.append(Block.user(word))

    path.unlink()
    now[0] += sqlite_datastore.CHECK_INTERVAL_S + 0.1 if blocks == 1 else 0

    with one_line(GONE):
        session.append(*(Block.user(f"{number}") for number in range(blocks)))
    with one_line(GONE):
        store.close()
    assert not path.exists()


def test_a_file_that_is_replaced_while_it_is_open_is_told_and_left_alone(tmp_path: Path) -> None:
    path, backup = tmp_path / "log.db", tmp_path / "backup.db"
    store = cutbank.open(path)
    session = store.session("session")
    session.append(Block.user("words"))
    store.backup(backup)

    for name in ("log.db-wal", "log.db-shm"):
        (tmp_path / name).unlink()
    backup.replace(path)

    with cutbank.open(path) as other:
        other.session("session").append(Block.user("of the other"))
        with one_line(GONE):
            session.append(Block.user("one"), Block.user("two"))
        with one_line(GONE):
            store.close()
        other.session("session").append(Block.user("and more"))
        assert texts(other.session("session")) == ["words", "of the other", "and more"]
        assert verify(other).is_ok

"""A backup of either database is one SQLite file, and right while others write."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Event as Signal

from faulty import check_log, one_line, texts
from opened_stores import store_of

import cutbank
from cutbank import Block, SessionStore, StoredSession, verify


def test_a_backup_is_consistent_while_others_write(database: str, tmp_path: Path) -> None:
    acknowledged: SimpleQueue[int] = SimpleQueue()
    finished = Signal()

    def write() -> None:
        # A store of its own, as another process has it.
        with cutbank.open(database, synchronous="NORMAL") as other:
            for number in count():
                blocks = Block.user(f"{number}"), Block.assistant(f"{number} " * 3_000)
                other.session("session").append(*blocks)
                acknowledged.put(number)
                if finished.is_set():
                    return

    with cutbank.open(database) as store, ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        try:
            for number in range(3):
                before = max(acknowledged.get(timeout=60) for _ in range(3))
                store.backup(tmp_path / f"backup {number}.db")

                with cutbank.open(tmp_path / f"backup {number}.db") as copy:
                    said = texts(copy.session("session", create=False))
                    assert [text.split()[0] for text in said] == [
                        f"{n // 2}" for n in range(len(said))
                    ]
                    assert len(said) % 2 == 0
                    assert len(said) // 2 > before
                    check_log(copy)
        finally:
            finished.set()
        writing.result()


def test_a_backup_is_one_private_file_that_goes_on_as_the_log_did(
    session: StoredSession, tmp_path: Path
) -> None:
    blocks = Block.user("a"), Block.assistant("large " * 5_000)
    session.append(*blocks, key="k")
    fork = session.fork("fork")
    fork.append(Block.user("b"))
    (tmp_path / "backups").mkdir()
    target = tmp_path / "backups" / "copy.db"
    recorder = session.log.events.recorder

    store_of(session).backup(target)
    copied = recorder.select_notifications(1, 99)
    session.append(Block.user("later"))

    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o077 == 0
    with cutbank.open(target) as copy:
        again = copy.session("a session", create=False)
        assert verify(copy).violations == []
        assert texts(again) == ["a", "large " * 5_000]
        assert again.append(*blocks, key="k").is_repeated
        assert copy.session("fork").view().fingerprint == fork.view().fingerprint
        assert copy.events.recorder.select_notifications(1, 99) == copied
        again.append(Block.user("goes on"))


def test_a_backup_that_fails_says_why(store: SessionStore, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_text("something of mine")

    with one_line("there.db exists already: give a new path"):
        store.backup(tmp_path / "there.db")
    with one_line("cannot be opened"):
        store.backup(tmp_path / "no such folder" / "copy.db")

    assert (tmp_path / "there.db").read_text() == "something of mine"


# In memory


def test_stores_in_memory_are_separate() -> None:
    one, other = cutbank.open(":memory:"), cutbank.open(":memory:")
    one.session("session").append(Block.user("words"))
    assert other.sessions() == []
    other.close()
    assert texts(one.session("session")) == ["words"]
    one.close()


def test_a_store_in_memory_can_be_saved(tmp_path: Path) -> None:
    with cutbank.open(":memory:") as store:
        session = store.session("session")
        session.append(Block.user("words " * 5_000))
        store.backup(tmp_path / "saved.db")
        check_log(store)

    with cutbank.open(tmp_path / "saved.db") as saved:
        assert texts(saved.session("session", create=False)) == ["words " * 5_000]

"""Forks children of a process whose threads write: run with the address of a database."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Event, Thread
from time import monotonic

from faulty import check_log, texts
from opened_stores import store_of

import cutbank
from cutbank import Block, StoredSession

WRITERS = 2
CHILDREN = 3
WAITED_S = 30.0


@contextmanager
def written_to(session: StoredSession) -> Iterator[list[str]]:
    """Threads append to the session, look at it and search, until the block is left."""
    said: list[str] = []
    ends, failures = Event(), list[BaseException]()

    def write(name: int) -> None:
        number = 0
        try:
            while not ends.is_set():
                words = f"thread {name} says {number}"
                session.append(Block.user(words))
                said.append(words)
                number += 1
                if number % 5 == 0:
                    session.view()
                    store_of(session).search("says", limit=1)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [Thread(target=write, args=(name,)) for name in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield said
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert failures == []


def child(session: StoredSession, words: str) -> None:
    session.append(Block.user(words))
    assert words in {entry.text for entry in session.view().entries}
    assert store_of(session).search(f'"{words}"')
    store_of(session).close()


def check_forks(database: str) -> None:
    """Fork children while threads write, and check that each goes on, and that nothing is lost."""
    with cutbank.open(database, synchronous="NORMAL") as store:
        session = store.session("session")
        forking = get_context("fork")
        with written_to(session) as said:
            for number in range(CHILDREN):
                words = f"child number{number}"
                process = forking.Process(target=child, args=(session, words))
                began = monotonic()
                process.start()
                process.join(WAITED_S)
                took = monotonic() - began
                process.kill()
                assert (process.exitcode, took < WAITED_S / 3) == (0, True)
                said.append(words)

        assert Counter(texts(session)) == Counter(said)
        check_log(store)
        session.append(Block.user("and so does the parent"))
    with cutbank.open(database) as store:
        assert texts(store.session("session", create=False))[-1] == "and so does the parent"


if __name__ == "__main__":
    check_forks(sys.argv[1])

"""One file of ever more sessions: each is found as fast as if it were alone."""

from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.session import Session

from .figure import Found, Growth, Options
from .raw import Raw
from .timing import alone, fresh, paired
from .twins import Twins

TOGETHER = 1_000
"""Sessions that are opened in one transaction while the file is filled."""
SAMPLE = 300
"""Sessions that are looked at; each once, for the second time it is cached."""


def sessions(options: Options) -> Found:
    """Up to 100,000 sessions in one file, of one block each; a million with --large."""
    folder, grown, dice = options.folder / "sessions", Growth(options.sizes), Random(1)  # noqa: S311 - nothing here is secret
    with closing(Twins(folder, "NORMAL", "warm-up")) as warm_up:
        warm_up.fill(options.blocks // 5)
    for before, size in zip((0, *options.sizes), options.sizes, strict=False):
        # In a process of its own: what that one has cached goes with it.
        fresh(partial(fill, folder, before), [size])
        keys = [key_of(number) for number in dice.sample(range(size), min(size, SAMPLE))]
        with closing(File(folder)) as file:
            times = paired(keys, file.open, file.raw.last)
            yield grown.figure("open of a named session", size, *map(median, times))
        with closing(File(folder)) as file:
            times = paired(keys, file.append, file.raw_append)
            yield grown.figure("append to any session", size, *map(median, times))
            new = [f"new-{size}-{number}" for number in range(SAMPLE)]
            times = paired(new, file.begin, file.raw_append)
            yield grown.figure("a new session", size, *map(median, times))
        seconds = alone(keys[:30], partial(viewed, folder))
        yield grown.figure("reopened view of any session", size, seconds)
    yield from grown.exponents()


def key_of(number: int) -> str:
    return f"session-{number}"


def text_of(key: str) -> str:
    return f"This is {key}. " * 8


def fill(folder: Path, before: int, size: int) -> None:
    """Open sessions `before` to `size` in both files, by the store's own mapper and recorder."""
    with closing(File(folder)) as file:
        for first in range(before, size, TOGETHER):
            keys = [key_of(number) for number in range(first, min(first + TOGETHER, size))]
            file.begin_all(keys)
            file.raw_begin_all(keys)


class File:
    """One file of each kind, with many sessions."""

    def __init__(self, folder: Path) -> None:
        self.store = open_store(folder / "cutbank.db", synchronous="NORMAL")
        self.raw = Raw(folder / "raw.db", "NORMAL", "")

    def begin_all(self, keys: list[str]) -> None:
        opened = [Session.open("default", key, clock=self.store.events.clock) for key in keys]
        for session, key in zip(opened, keys, strict=True):
            session.append(Block.user(text_of(key)))
        self.store.events.save(*opened)

    def raw_begin_all(self, keys: list[str]) -> None:
        self.raw.db.execute("BEGIN IMMEDIATE")
        for key in keys:
            self.raw.put(key, 1, {"kind": "user", "text": text_of(key)})
        self.raw.db.execute("COMMIT")

    def open(self, key: str) -> None:
        self.store.session(key, create=False)

    def append(self, key: str) -> None:
        self.store.session(key, create=False).append(Block.assistant(text_of(key)))

    def begin(self, key: str) -> None:
        self.store.session(key).append(Block.user(text_of(key)))

    def raw_append(self, key: str) -> None:
        self.raw.put(key, self.raw.last(key) + 1, {"kind": "assistant", "text": text_of(key)})

    def close(self) -> None:
        self.store.close()
        self.raw.close()


def viewed(folder: Path, key: str) -> SessionStore:
    store = open_store(folder / "cutbank.db", synchronous="NORMAL")
    (entry, *_) = store.session(key, create=False).view().entries
    assert entry
    return store

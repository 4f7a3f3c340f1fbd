"""What it takes to read a long log, to take back what was said, and to forget it."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from itertools import islice
from operator import methodcaller
from statistics import median
from typing import Any

from cutbank import Block, SessionStore, StoredSession
from cutbank.adapters.runtime.sessions.session_store import open_store

from .figure import Figure, Found, Options
from .timing import elapsed
from .workload import as_block, turns

TIMES = 9
"""Sessions that are cleared, and deleted, one after the other."""


def log_verbs(options: Options) -> Found:
    """In a session as long as the longest that grows, and among 1,000 sessions."""
    size, cleared = options.sizes[-1], min(1_600, options.blocks)
    with closing(open_store(options.folder / "log-verbs.db")) as store:
        session = fill(store, "long", size)
        session.append(Block.user("the one that is found"), key="named")
        yield figure("blocks(last=20)", size, 1, range(30), lambda _: list(session.blocks(last=20)))
        yield figure("find", size, 0.1, range(300), lambda _: session.find("named"))
        yield figure("pop", size, 1, range(30), lambda _: session.pop())
        named = [f"short-{number}" for number in range(2 * TIMES)]
        short = [fill(store, key, cleared) for key in named[:TIMES]]
        yield figure("clear", cleared, 5, short, lambda one: one.clear())
        for key in named[TIMES:]:
            fill(store, key, options.blocks)
        yield figure("delete", options.blocks, 10, named[TIMES:], store.delete)
        for number in range(1_000 - len(store.sessions())):
            store.session(f"listed-{number}").append(Block.user("go"))
        listed = len(store.sessions())
        yield figure("sessions()", listed, 20, range(9), lambda _: store.sessions())
    # Each in a file of its own, which an erasure writes again.
    with ExitStack() as files:
        paths = [options.folder / f"erased-{number}.db" for number in range(3)]
        stores = [files.enter_context(closing(open_store(path))) for path in paths]
        for store in stores:
            fill(store, "erased", options.blocks)
        erase = methodcaller("erase", "erased")
        yield figure("erase", options.blocks, 1_000, stores, erase)


def fill(store: SessionStore, key: str, size: int) -> StoredSession:
    session = store.session(key)
    pieces = (as_block(piece) for turn in turns(seed=1) for piece in turn)
    wanted = islice(pieces, size)
    while some := list(islice(wanted, 500)):
        session.append(*some)
    return session


def figure(
    what: str, size: int, most: float, items: Iterable[Any], act: Callable[[Any], object]
) -> Figure:
    taken = median(elapsed(act, item) for item in items) * 1e3
    return Figure(f"{what} at {size:,}", "ms", taken, target=f"<= {most} ms", met=taken <= most)

"""Read models: how fast they catch up, how far behind they are, how long a search takes."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import Any

from cutbank import Block, SessionStore
from cutbank.adapters.session_store import open_store

from .figure import Figure, Found, Options
from .timing import elapsed
from .workload import as_block, turns

HOME = "cutbank.adapters.read_models"
SESSION_BLOCKS = 1_000
"""Blocks after which another session begins."""
PACE = 0.01
"""Seconds between two appends while it is measured how far behind the read models are."""
PEEK = 0.0002
FIND = 50
"""Searches for each kind of words."""


def read_models(options: Options) -> Found:
    """Of 10,000 blocks; with --large of as many as the largest size says, to search them."""
    if find_spec(HOME) is None:
        yield "read models: skipped: this cutbank has none"
        return
    blocks = options.sizes[-1] if options.large else options.blocks
    folder = options.folder / "read_models"
    folder.mkdir()
    with closing(open_store(folder / "cutbank.db", synchronous="NORMAL")) as store:
        said = fill(store, blocks)
        models = _models(store, folder / "index.db")
        with closing(models):
            seconds, events = _caught_up(models, search=False)
            speed = events / seconds
            what = f"read models: catch up, {events:,} events"
            yield Figure(what, "events/s", speed, target=">= 20000", met=speed >= 20_000)
            seconds, words = _caught_up(models, search=True)
            what = f"read models: full text of {blocks:,} blocks"
            yield Figure(what, "events/s", words / seconds)
            yield f"{what} takes {seconds:.1f} s; {_bytes(folder)}"
            yield from _lag(store, models, options.ops // 10)
            for kind, queries in _queries(said).items():
                taken = [elapsed(models.search, query) * 1e3 for query in queries]
                what = f"search of {blocks:,} blocks, {kind}"
                met = median(taken) <= 20
                yield Figure(f"{what}, p50", "ms", median(taken), target="<= 20 ms", met=met)
                yield Figure(f"{what}, slowest", "ms", max(taken))


def fill(store: SessionStore, blocks: int) -> Counter[str]:
    """Sessions of a thousand blocks each; returns the words that some of them hold."""
    said: Counter[str] = Counter()
    for number, some in enumerate(_sessions(blocks)):
        session = store.session(f"session-{number}")
        for _, turn in groupby(some, itemgetter("turn")):
            session.append(*map(as_block, turn))
        if number < 10:
            said.update(word for piece in some for word in re.findall("[a-z]{4,}", piece["text"]))
    return said


def _sessions(blocks: int) -> Iterator[list[dict[str, Any]]]:
    pieces = (piece for turn in turns(seed=4) for piece in turn)
    for first in range(0, blocks, SESSION_BLOCKS):
        yield list(islice(pieces, min(SESSION_BLOCKS, blocks - first)))


def _models(store: SessionStore, file: Path) -> Any:
    return import_module(f"{HOME}.read_models").ReadModels(store.events, str(file))


def _caught_up(models: Any, *, search: bool) -> tuple[float, int]:
    start = perf_counter()
    events = models.catch_up(search=search)
    return perf_counter() - start, events


def _lag(store: SessionStore, models: Any, times: int) -> Iterator[Figure]:
    """From the end of an append to the moment when all read models have it."""
    session, lags = store.session("live"), []
    with import_module(f"{HOME}.follower").Follower(models):
        for number in range(times + 5):
            session.append(Block.user(f"It is measured how soon this is there, {number}."))
            start, newest = perf_counter(), store.events.recorder.max_notification_id()
            while models.position < newest:
                sleep(PEEK)
            lags.append((perf_counter() - start) * 1e3)
            sleep(PACE)
    lags = lags[5:]  # the first ones wait for it to begin
    found = median(lags)
    yield Figure("read models: behind, p50", "ms", found, target="<= 10 ms", met=found <= 10)
    yield Figure("read models: behind, p99", "ms", quantiles(lags, n=100)[98])


def _queries(said: Counter[str]) -> dict[str, list[str]]:
    """Words that few blocks hold, or many; two of them; and one that nobody ever said."""
    ranked = [word for word, _ in said.most_common()]
    often, rarely = ranked[:FIND], ranked[-FIND:]
    return {
        "rare words": rarely,
        "frequent words": often,
        "two words": [f"{one} {other}" for one, other in zip(often, rarely, strict=True)],
        "words that are not there": [f"nobodysaid{number}" for number in range(FIND)],
    }


def _bytes(folder: Path) -> str:
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    return ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in sizes.items())

"""Read models: how fast they catch up, how far behind they are live, how soon a search ends."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles
from time import perf_counter, sleep

from cutbank import Block, SessionStore
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.adapters.storage.read_models.read_models import ReadModels
from cutbank.domain.errors import NothingToCompactError

from .figure import Figure, Found, Options
from .timing import elapsed
from .workload import as_block, turns

SESSIONS, WORDS, TOGETHER, REPEATS = 20, 30, 1_000, 20
LIMIT = 100_000
LEAST, MOST_LAG, MOST_SEARCH = 20_000, 10, 20
VOCABULARY = 30_000
POLL_SECONDS = 0.000_5


def read_models(options: Options) -> Found:
    """Catching up on a log of turns, calls and compactions; live; and in a log of short blocks."""
    folder = options.folder / "read-models"
    folder.mkdir()
    with open_store(folder / "log.db", synchronous="NORMAL") as store:
        fill(store, options.blocks)
        yield from catching_up(store, folder)
        yield from live(store, options.ops)
    with open_store(folder / "words.db", synchronous="NORMAL") as store:
        blocks = max(options.sizes)
        fill_with_words(store, blocks)
        seconds = elapsed(store.read_models.catch_up)
        yield f"the log of {blocks:,} short blocks was read in {seconds:.0f} s"
        yield from searches(store, blocks)


def fill(store: SessionStore, blocks: int) -> None:
    """Turns as everywhere, a recorded call after each, and a compaction where it is time."""
    dice = turns(1)
    for number in range(SESSIONS):
        session, said = store.session(f"session-{number}"), 0
        while said < blocks / SESSIONS:
            pieces = next(dice)
            session.append(*map(as_block, pieces))
            said += len(pieces)
            view = session.view()
            session.record_call(view, call_id=f"call-{said}")
            if view.tokens > LIMIT * 0.8:
                try:
                    session.compact(limit=LIMIT)
                except NothingToCompactError:
                    continue


def catching_up(store: SessionStore, folder: Path) -> Iterator[Figure]:
    """The index first, alone, then the words; in a file that is new for each of three times."""
    events = store.events.recorder.max_notification_id()
    index, words, size, disk = list[float](), list[float](), 0, 0.0
    for number in range(3):
        models = ReadModels(store.events, str(folder / f"{number}.db"))
        index.append(elapsed(partial(models.catch_up, search=False)))
        words.append(elapsed(models.catch_up))
        ((size,),) = models.file.fetch_rows("SELECT sum(bytes) FROM sessions")
        models.close()
        disk = (folder / f"{number}.db").stat().st_size
    rate = events / median(index)
    what = "read models, catching up without text"
    yield Figure(what, "events/s", rate, target=f">= {LEAST:,} events/s", met=rate >= LEAST)
    yield Figure("search, catching up", "events/s", events / median(words))
    yield Figure("search, catching up", "MB/s", size / median(words) / 1e6)
    yield Figure("read models, disk per payload", "bytes/byte", disk / size)


def live(store: SessionStore, ops: int) -> Iterator[Figure]:
    """From the return of an append to when whoever waits for its position finds it there."""
    models, lags = store.read_models, list[float]()
    session = store.session("live")
    with store.follow_log():
        models.catch_up()
        for number in range(ops):
            session.append(Block.user(f"What about file {number}?"))
            newest = store.events.recorder.max_notification_id()
            began = perf_counter()
            while models.position < newest:
                sleep(POLL_SECONDS)
            lags.append((perf_counter() - began) * 1e3)
    met = median(lags) <= MOST_LAG
    yield Figure("behind when live", "ms", median(lags), target=f"<= {MOST_LAG} ms", met=met)
    yield Figure("behind when live, p99", "ms", quantiles(lags, n=100)[98])


def fill_with_words(store: SessionStore, blocks: int) -> None:
    """Blocks of some thirty words, of which a few are in nearly all and most in nearly none."""
    dice = Random(1)  # noqa: S311 - nothing here is secret
    often = [1 / rank for rank in range(1, VOCABULARY + 1)]
    told = dice.choices([f"w{rank}" for rank in range(VOCABULARY)], often, k=500_000)
    for first in range(0, blocks, TOGETHER):
        starts = [dice.randrange(len(told) - WORDS) for _ in range(min(TOGETHER, blocks - first))]
        texts = (" ".join(told[start : start + WORDS]) for start in starts)
        store.session(f"session-{first // TOGETHER}").append(*map(Block.user, texts))


QUERIES = {
    "a word of most blocks": "w0",
    "two words of most blocks": "w0 w1",
    "a rare word": "w25000",
}


def searches(store: SessionStore, blocks: int) -> Iterator[Figure]:
    """The whole of `store.search`: is there news, find, read the originals, make snippets."""
    for name, query in QUERIES.items():
        times = [elapsed(store.search, query) for _ in range(REPEATS)]
        met = median(times) * 1e3 <= MOST_SEARCH
        what = f"search of {blocks:,}: {name}"
        yield Figure(what, "ms", median(times) * 1e3, target=f"<= {MOST_SEARCH} ms", met=met)
        yield Figure(f"{what}, the slowest of {REPEATS}", "ms", max(times) * 1e3)

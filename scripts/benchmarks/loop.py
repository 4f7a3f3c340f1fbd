"""What an agent's loop costs: asked before each call, while a summary runs, and at a swap."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import islice
from threading import Event, Thread

from cutbank import CompactionOptions, SessionStore, StoredSession
from cutbank.adapters.runtime.agent_loop import AgentLoop
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.domain.session_events import Usage
from cutbank.domain.summaries.summarizer import Draft, Material

from .figure import Figure, Found, Options, Times, against
from .postgres import NEEDED, server
from .swaps import swapped
from .timing import elapsed, paired
from .workload import SUMMARY, KeepNewest, Piece, as_block, turns

KEPT = 50, 1_000
TO_SWAP = 300, 1_000
"""Blocks of a view that is about to be compacted."""
LIMIT = 10_000_000
"""Tokens of a context that no session here fills."""
MOST_ADDED, MOST_SLOWER = 0.3, 1.2
ROUND = 20
"""Appends, one after the other, while a summary runs; then as many without."""
PATIENCE = 60


def loop(options: Options) -> Found:
    """Both on SQLite; the appends on PostgreSQL, too, where there is a server to be had."""
    with open_store(options.folder / "loop.db") as store:
        yield from prepared(store, options.ops)
        yield from appended(store, "", options.ops)
        yield from all_swapped(store, "", options.ops)
    for module, reason in NEEDED.items():
        if find_spec(module) is None:
            yield f"loop on postgres: skipped: {reason}"
            return
    with (
        server(options.folder / "loop-postgres") as url,
        closing(open_store(url)) as store,
    ):
        yield from appended(store, "postgres: ", options.ops)
        yield from all_swapped(store, "postgres: ", options.ops)


def all_swapped(store: SessionStore, where: str, ops: int) -> Iterator[Figure]:
    for blocks in TO_SWAP:
        base = filled(store, f"to-swap-{blocks}", blocks)
        yield from swapped(where, base, ops)


def prepared(store: SessionStore, ops: int) -> Iterator[Figure]:
    """What is asked before a call where no compaction is due, against the view that is served."""
    for kept in KEPT:
        for is_reported in (True, False):
            session = filled(store, f"kept-{kept}-{is_reported}", kept)
            if is_reported:
                view = session.view()
                usage = Usage(input=view.tokens, output=200)
                session.record_call(view, call_id="call", usage=usage)
            agent = session.loop(limit=LIMIT)
            times = paired(range(ops), partial(prepare, agent), partial(viewed, session))
            how = "its size reported" if is_reported else "nothing reported"
            yield added(f"before a call, {kept:,} blocks kept, {how}", times)


def prepare(agent: AgentLoop, _: object) -> object:
    """What an agent calls before its model; no compaction is due."""
    return agent.prepare()


def viewed(session: StoredSession, _: object) -> object:
    return session.view()


def added(what: str, times: Times) -> Figure:
    """What both take; how much more the one than the other may."""
    figure = against(what, "ms", times)
    assert figure.raw is not None
    more = figure.cutbank - figure.raw
    target = f"<= {MOST_ADDED} ms more"
    return Figure(what, "ms", figure.cutbank, figure.raw, figure.ratio, target, more <= MOST_ADDED)


def filled(store: SessionStore, key: str, blocks: int) -> StoredSession:
    session = store.session(key)
    pieces = [piece for turn in islice(turns(seed=7), blocks) for piece in turn][:blocks]
    session.append(*map(as_block, pieces))
    return session


@dataclass
class Waits:
    """A summarizer that takes as long as it is told to, as one that waits for a model does."""

    name: str = "waits"
    begun: Event = field(default_factory=Event)
    done: Event = field(default_factory=Event)

    def summarize(self, _: Material) -> Draft:
        self.begun.set()
        assert self.done.wait(PATIENCE), "nobody has told the summarizer to end"
        return Draft(SUMMARY)


def appended(store: SessionStore, where: str, ops: int) -> Iterator[Figure]:
    """Appends to a session of which a summary is written meanwhile, and without, turn about."""
    session = filled(store, "written-to", 1_000)
    pieces = (piece for turn in turns(seed=8) for piece in turn)
    times: Times = ([], [])
    for number in range(max(2, ops // ROUND)):
        for is_summarized in (True, False) if number % 2 else (False, True):
            some = list(islice(pieces, ROUND))
            if is_summarized:
                times[0].extend(while_summarized(session, some))
            else:
                times[1].extend(one_by_one(session, some))
    what = f"{where}append while a summary runs"
    for percent in (50, 99):
        yield slower(what, percent, times)


def while_summarized(session: StoredSession, pieces: list[Piece]) -> list[float]:
    summarizer = Waits()
    options = CompactionOptions(summarizers=[summarizer])
    compaction = Thread(target=partial(session.compact, KeepNewest(), options=options))
    compaction.start()
    assert summarizer.begun.wait(PATIENCE), "the summarizer was never asked"
    try:
        return one_by_one(session, pieces)
    finally:
        summarizer.done.set()
        compaction.join()


def one_by_one(session: StoredSession, pieces: list[Piece]) -> list[float]:
    """Of all but the first: what was written just before it was not an append."""
    return [elapsed(session.append, as_block(piece)) for piece in pieces][1:]


def slower(what: str, percent: int, times: Times) -> Figure:
    """With a summary, without, and the ratio of the two."""
    with_it, without = (sorted(side)[len(side) * percent // 100] * 1e6 for side in times)
    ratio = with_it / without
    target = f"<= {MOST_SLOWER}x"
    what = f"{what}, p{percent}"
    return Figure(what, "us", with_it, without, ratio, target, ratio <= MOST_SLOWER)

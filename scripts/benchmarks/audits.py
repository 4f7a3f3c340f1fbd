"""How long it takes to prove what one call of a long session was sent, and to tell its story."""

from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from random import Random

import cutbank
from cutbank import CompactionOptions, StoredSession
from cutbank.adapters.analysis.run_replay import read_calls
from cutbank.adapters.runtime.sessions.session_store import open_store
from cutbank.projections.audit_entries import AuditedCall

from .figure import Figure, Found, Options
from .timing import alone, elapsed
from .workload import KeepNewest, SaysTheSame, as_block, turns

MOST = 20
COMPACTED_EACH = 1_000
"""Blocks after which the agent's context is full."""
SEED = 8


def audits(options: Options) -> Found:
    """One session, up to 100,000 blocks, that an agent was served a view of for each turn."""
    with open_store(options.folder / "audits.db", synchronous="NORMAL") as store:
        session = store.session("audited")
        pieces = (piece for turn in turns(seed=SEED) for piece in turn)
        blocks = 0
        for size in [size for size in options.sizes if size <= 100_000]:
            blocks += served(session, islice(pieces, size - blocks), blocks)
            of = f"of {blocks:,} blocks"
            fresh = store.session("audited")
            calls = read_calls(fresh)
            dice = Random(SEED)  # noqa: S311 - nothing here is secret
            numbers = dice.choices(range(1, len(calls) + 1), k=30)
            ms = alone(numbers, partial(proved, fresh)) * 1e3
            what = f"audit --call N {of}, counted"
            yield Figure(what, "ms", ms, target=f"<= {MOST} ms", met=ms <= MOST)
            seconds = elapsed(told_whole, fresh)
            yield Figure(f"the whole story {of}, each call proved", "blocks/s", blocks / seconds)


def served(session: StoredSession, pieces: object, before: int) -> int:
    """An agent goes on, turn by turn, and its context is compacted as it fills; returns blocks."""
    count = 0
    for number, group in groupby(pieces, itemgetter("turn")):  # type: ignore[call-overload]
        turn = list(group)
        view = session.view()
        session.append(*map(as_block, turn))
        session.record_call(view, call_id=f"{before}-{number}", renderer="anthropic/1")
        count += len(turn)
        if len(view.entries) >= COMPACTED_EACH:
            session.compact(KeepNewest(), options=CompactionOptions(summarizers=[SaysTheSame()]))
    return count


def proved(session: StoredSession, number: int) -> AuditedCall:
    call = cutbank.audit_call(session, number)
    assert not call.shown.is_refuted, call.shown
    return call


def told_whole(session: StoredSession) -> int:
    return sum(1 for _ in cutbank.audit(session).read_between())

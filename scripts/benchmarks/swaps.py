"""What a prepared boundary costs the agent at the threshold: `prepare()` that swaps it in."""

from collections.abc import Iterator
from statistics import median

from cutbank import Block, CompactionOptions, StoredSession
from cutbank.domain.policies.reserve_headroom import ReserveHeadroom
from cutbank.domain.session_events import Usage

from .figure import Figure
from .timing import elapsed
from .workload import KEPT, KeepNewest, SaysTheSame

MOST_MS = 2.0
POLICY = ReserveHeadroom(reserve_tokens=1_000)
TIMES = 100


def swapped(where: str, base: StoredSession, ops: int) -> Iterator[Figure]:
    """Each time a fork of a session, of which a boundary is prepared; and one append after it.

    The process is warm: the view is in memory, and a call that needed no swap came before.
    """
    swaps, appends = [], []
    for number in range(min(ops, TIMES)):
        session = base.fork(f"{base.key}-{where}{number}")
        view = session.view()
        usage = Usage(input=view.tokens, output=200)
        session.record_call(view, call_id="call", usage=usage)
        session.compact(
            KeepNewest(),
            limit=2 * view.tokens,
            options=CompactionOptions(summarizers=[SaysTheSame()], activate=False),
        )
        session.loop(policy=POLICY, limit=2 * view.tokens).prepare()
        session.append(Block.user("And now?"))
        agent = session.loop(policy=POLICY, limit=view.tokens)
        swaps.append(elapsed(agent.prepare) * 1e3)
        boundary = session.view().boundary
        assert boundary is not None, "nothing was swapped in"
        assert boundary.policy == KeepNewest.name, "a summary was written, not swapped in"
        appends.append(elapsed(session.append, Block.assistant("So be it.")) * 1e3)
    blocks = len(base.view().entries)
    took, beside = median(swaps), median(appends)
    what = f"{where}swap in prepare(), {blocks:,} blocks to {KEPT}; beside it an append"
    yield Figure(what, "ms", took, beside, took / beside, f"<= {MOST_MS:g} ms", took <= MOST_MS)

"""Replays a recorded session: what each call of its model would have been sent."""

from collections.abc import Iterator

from .decider import Decider
from .recording import Recording
from .replay_fold import ReplayFold
from .replayed_call import FutileCompaction, ReplayCompaction, ReplayedCall


def replay_recording(
    recording: Recording, decider: Decider, *, limit: int = 0, lineage: str = "replay"
) -> Iterator[ReplayedCall]:
    """Yield each call in the order of the log, decided by `decider`; a limit of 0 is no limit.

    A pure function of the log, without I/O or a clock. Raises PolicyFailedError if a policy raises
    or returns something other than a plan.
    """
    fold = ReplayFold(recording, lineage)
    for call in recording.calls:
        # A call that is recorded late saw less than the call before it, but gets the later view.
        fold.advance(call.last_seen_position)
        fold.measure_overhead(call)
        decided = decider.decide(fold, call)
        tokens = fold.tokens
        yield ReplayedCall(
            call=call,
            tokens=tokens,
            unchanged=min(fold.unchanged, tokens),
            compactions=tuple(one for one in decided if isinstance(one, ReplayCompaction)),
            futile_compactions=tuple(one for one in decided if isinstance(one, FutileCompaction)),
            boundary=fold.history.boundary,
            summary=fold.history.summary,
            is_refused=0 < limit < tokens,
            make_view=fold.make_view,
        )
        fold.record_sent()

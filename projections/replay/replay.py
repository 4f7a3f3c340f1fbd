"""Runs a recorded session through again: at each call of its model, what would have been sent."""

from collections.abc import Iterator

from .decider import Decider
from .recording import Recording
from .replay_fold import ReplayFold
from .replayed_call import FutileCompaction, ReplayCompaction, ReplayedCall


def replay_recording(
    recording: Recording, decider: Decider, *, limit: int = 0, lineage: str = "replay"
) -> Iterator[ReplayedCall]:
    """Each call in the order of the log, decided by `decider`; 0 is a model without a limit.

    A pure function of the log: nothing is read, written or asked, and no clock is looked at. Raises
    PolicyFailedError where a policy raises or answers what is no plan.
    """
    fold = ReplayFold(recording, lineage)
    for call in recording.calls:
        # What is told late saw less than the call before it, whose view stands by now.
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

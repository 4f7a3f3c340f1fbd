"""Runs a recorded session through again: at each call of its model, what would have been sent."""

from collections.abc import Iterator

from .decider import Decider
from .fold import Fold
from .recording import Recording
from .served import Compacted, Futile, Served


def replayed(
    recording: Recording, decider: Decider, *, limit: int = 0, lineage: str = "replay"
) -> Iterator[Served]:
    """Each call in the order of the log, decided by `decider`; 0 is a model without a limit.

    A pure function of the log: nothing is read, written or asked, and no clock is looked at. Raises
    PolicyFailedError where a policy raises or answers what is no plan.
    """
    fold = Fold(recording, lineage)
    for call in recording.calls:
        # What is told late saw less than the call before it, whose view stands by now.
        fold.advance(call.sees)
        fold.measure(call)
        decided = decider.decided(fold, call)
        tokens = fold.tokens
        yield Served(
            call=call,
            tokens=tokens,
            unchanged=min(fold.unchanged, tokens),
            compactions=tuple(one for one in decided if isinstance(one, Compacted)),
            futile=tuple(one for one in decided if isinstance(one, Futile)),
            boundary=fold.history.boundary,
            summary=fold.history.summary,
            is_refused=0 < limit < tokens,
            view=fold.view,
        )
        fold.called()

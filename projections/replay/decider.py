"""The port of a replay: who decides, before each call of a model, what it is sent."""

from typing import Protocol

from .recording import RecordedCall
from .replay_fold import ReplayFold
from .replayed_call import FutileCompaction, ReplayCompaction

ReplayDecision = ReplayCompaction | FutileCompaction


class Decider(Protocol):
    """Decides on the lineage of one replay; a replay makes its decider anew."""

    def decide(self, fold: ReplayFold, call: RecordedCall, /) -> list[ReplayDecision]:
        """Decide what the call is sent, and have `fold` serve it; what was decided, in order.

        The fold has taken in all that the call could see.
        """
        ...


class NeverDecider:
    """Sends all of the history each time, however large it has become."""

    def decide(self, _fold: ReplayFold, _call: RecordedCall) -> list[ReplayDecision]:
        return []

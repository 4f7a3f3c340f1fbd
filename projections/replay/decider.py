"""Defines the interface that decides, before each call of a replay, what the model is sent."""

from typing import Protocol

from .recording import RecordedCall
from .replay_fold import ReplayFold
from .replayed_call import FutileCompaction, ReplayCompaction

ReplayDecision = ReplayCompaction | FutileCompaction


class Decider(Protocol):
    """Decides on the lineage of one replay; each replay needs a new decider."""

    def decide(self, fold: ReplayFold, call: RecordedCall, /) -> list[ReplayDecision]:
        """Decide what the call is sent, make `fold` serve it, and return the decisions in order.

        `fold` has applied everything that the call could see.
        """
        ...


class NeverDecider:
    """Sends the whole history each time, however large it is."""

    def decide(self, _fold: ReplayFold, _call: RecordedCall) -> list[ReplayDecision]:
        return []

"""The port of a replay: who decides, before each call of a model, what it is sent."""

from typing import Protocol

from .fold import Fold
from .recording import Call
from .served import Compacted, Futile

Decided = Compacted | Futile


class Decider(Protocol):
    """Decides on the lineage of one replay; a replay makes its decider anew."""

    def decided(self, fold: Fold, call: Call, /) -> list[Decided]:
        """Decide what the call is sent, and have `fold` serve it; what was decided, in order.

        The fold has taken in all that the call could see.
        """
        ...


class Never:
    """Sends all of the history each time, however large it has become."""

    def decided(self, _fold: Fold, _call: Call) -> list[Decided]:
        return []

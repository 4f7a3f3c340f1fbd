"""How much of what was at stake a policy's views still carried when it was needed."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .anchors import AnchorKind
from .beside import Beside
from .canonical import Boundary
from .reading import Reading
from .scores import Scores
from .sight import Sights
from .spells import Spell
from .stakes import Stake, candidates


class LostKey(NamedTuple):
    """A fact that the agent needed and that the view did not carry."""

    key: str
    kind: AnchorKind
    call: int
    """The call that wrote it down."""
    position: int
    """Of the newest hidden row that says it: its handle."""


class Measure:
    """The stakes of one session at certain boundaries, and who met them.

    It is made once and asked of many policies: what a row carries was read before, so that an
    answer costs in proportion to the stakes and not to the session.
    """

    def __init__(self, reading: Reading, boundaries: Sequence[Boundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self.candidates = candidates(reading, self.boundaries)
        """All stakes by any count, the generic and the loose ones included."""
        self.beside = Beside(reading, self.boundaries)

    @cached_property
    def stakes(self) -> tuple[Stake, ...]:
        """Those that count in R."""
        return tuple(
            stake for stake in self.candidates if not stake.is_generic and not stake.is_lifted
        )

    def scores(self, spells: Iterable[Spell] | Sights) -> Scores:
        """Counts of all stakes and of those that the views carry; ratios are theirs."""
        sights = Sights.of(self.reading, spells)
        met = [stake for stake in self.candidates if _carries(sights, stake)]
        with_generic = [stake for stake in self.candidates if not stake.is_lifted]
        loose = [stake for stake in self.candidates if not stake.is_generic]
        hit = [stake for stake in met if not stake.is_generic and not stake.is_lifted]
        hard = [stake for stake in self.stakes if stake.is_hard]
        facts = Scores(
            boundaries=len(self.boundaries),
            stakes=len(self.stakes),
            hits=len(hit),
            told_hits=sum(stake.key in sights.at(stake.call).summary.carried for stake in hit),
            hard_stakes=len(hard),
            hard_hits=sum(stake.is_hard for stake in hit),
            uses=sum(stake.uses for stake in self.stakes),
            uses_hit=sum(stake.uses for stake in hit),
            generic_stakes=len(with_generic),
            generic_hits=sum(not stake.is_lifted for stake in met),
            loose_stakes=len(loose),
            loose_hits=sum(
                self._carries_loosely(sights, stake) for stake in met if not stake.is_generic
            ),
        )
        return facts + self.beside.scores(sights, hit)

    def hits(self, spells: Iterable[Spell] | Sights) -> tuple[Stake, ...]:
        """The stakes that the views carry."""
        sights = Sights.of(self.reading, spells)
        return tuple(stake for stake in self.stakes if _carries(sights, stake))

    def lost(self, spells: Iterable[Spell] | Sights) -> tuple[LostKey, ...]:
        """The others, in the order in which they were needed."""
        sights = Sights.of(self.reading, spells)
        return tuple(
            LostKey(stake.key, stake.kind, stake.call, stake.hidden_in)
            for stake in self.stakes
            if not _carries(sights, stake)
        )

    def _carries_loosely(self, sights: Sights, stake: Stake) -> bool:
        """The same, where nothing counts that a tool said once the boundary was drawn."""
        sight, since = sights.at(stake.call), self.boundaries[stake.segment].call
        return stake.key in sight.summary.carried or sight.keeps_since(stake.key, stake.call, since)


def _carries(sights: Sights, stake: Stake) -> bool:
    """Whether the view of the call that needed it had the fact."""
    return sights.at(stake.call).carries(stake.key, stake.call)

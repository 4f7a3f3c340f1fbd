"""Measures how many stakes a policy's views still carried when they were needed."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .anchors import AnchorKind
from .canonical_boundaries import RowBoundary
from .later_references import LaterReference, list_candidate_stakes
from .scores import Scores
from .secondary_measures import SecondaryMeasures
from .segments import ViewSegment
from .session_reading import SessionReading
from .visibility import SessionVisibility


class LostKey(NamedTuple):
    """A fact that the agent needed and that the view did not carry."""

    key: str
    kind: AnchorKind
    call: int
    """The call that wrote the fact."""
    position: int
    """The position of the newest hidden row that contains it."""


class FidelityMeasure:
    """The stakes of one session at certain boundaries, and how many of them views carry.

    Made once for many policies: rows are read in advance, so that the cost of a score grows with
    the stakes and not with the session.
    """

    def __init__(self, reading: SessionReading, boundaries: Sequence[RowBoundary]) -> None:
        self.reading = reading
        self.boundaries = tuple(boundaries)
        self.candidates = list_candidate_stakes(reading, self.boundaries)
        """All stakes of any count, including generic and loose ones."""
        self.beside = SecondaryMeasures(reading, self.boundaries)

    @cached_property
    def stakes(self) -> tuple[LaterReference, ...]:
        """The stakes that count in R."""
        return tuple(
            stake for stake in self.candidates if not stake.is_generic and not stake.is_lifted
        )

    def score(self, segments: Iterable[ViewSegment] | SessionVisibility) -> Scores:
        """Return the counts of all stakes and of those that the views carry."""
        sights = SessionVisibility.from_segments(self.reading, segments)
        met = [stake for stake in self.candidates if _is_carried(sights, stake)]
        with_generic = [stake for stake in self.candidates if not stake.is_lifted]
        loose = [stake for stake in self.candidates if not stake.is_generic]
        hit = [stake for stake in met if not stake.is_generic and not stake.is_lifted]
        hard = [stake for stake in self.stakes if stake.is_hard]
        facts = Scores(
            boundaries=len(self.boundaries),
            stakes=len(self.stakes),
            hits=len(hit),
            told_hits=sum(
                stake.key in sights.find(stake.call).summary.carried_keys for stake in hit
            ),
            hard_stakes=len(hard),
            hard_hits=sum(stake.is_hard for stake in hit),
            uses=sum(stake.uses for stake in self.stakes),
            uses_hit=sum(stake.uses for stake in hit),
            generic_stakes=len(with_generic),
            generic_hits=sum(not stake.is_lifted for stake in met),
            loose_stakes=len(loose),
            loose_hits=sum(
                self._is_carried_loosely(sights, stake) for stake in met if not stake.is_generic
            ),
        )
        return facts + self.beside.score(sights, hit)

    def find_hits(
        self, segments: Iterable[ViewSegment] | SessionVisibility
    ) -> tuple[LaterReference, ...]:
        sights = SessionVisibility.from_segments(self.reading, segments)
        return tuple(stake for stake in self.stakes if _is_carried(sights, stake))

    def find_lost_keys(
        self, segments: Iterable[ViewSegment] | SessionVisibility
    ) -> tuple[LostKey, ...]:
        """Return the other stakes, in the order in which they were needed."""
        sights = SessionVisibility.from_segments(self.reading, segments)
        return tuple(
            LostKey(stake.key, stake.kind, stake.call, stake.hidden_in)
            for stake in self.stakes
            if not _is_carried(sights, stake)
        )

    def _is_carried_loosely(self, visibilities: SessionVisibility, stake: LaterReference) -> bool:
        """Check the same without tool results after the boundary."""
        sight, since = visibilities.find(stake.call), self.boundaries[stake.segment].call
        return stake.key in sight.summary.carried_keys or sight.has_key_since(
            stake.key, stake.call, since
        )


def _is_carried(visibilities: SessionVisibility, stake: LaterReference) -> bool:
    """Check whether the view of the call that needed the fact carried it."""
    return visibilities.find(stake.call).has_key(stake.key, stake.call)

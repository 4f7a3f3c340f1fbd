"""Measures how many stakes a policy's views still carried when they were needed."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .anchors import Anchor, AnchorKind, list_carried_keys
from .later_references import LaterReference, RowBoundary, list_candidate_stakes
from .rows import ViewSegment
from .scores import Scores
from .secondary_measures import SecondaryMeasures
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


_CHARS_PER_TOKEN = 4


def compute_upper_bound(measure: FidelityMeasure, budget: int | Sequence[int]) -> float:
    """Return the most stakes that can be carried, summed over all boundaries.

    `budget` is in tokens, for every text or for each. Facts of a text never overlap, so a text is
    at least as long as all its facts. Each key at stake is charged its cheapest equal share of a
    fact that carries it, and the cheapest are taken until the text is full, the last in part. No
    text can do better.
    """
    budgets = [budget] * len(measure.boundaries) if isinstance(budget, int) else budget
    by_segment = _group_by_segment(measure, measure.stakes)
    return sum(
        _max_stakes(measure, stakes, _CHARS_PER_TOKEN * tokens)
        for stakes, tokens in zip(by_segment, budgets, strict=True)
    )


def compute_own_bound(
    measure: FidelityMeasure, segments: Iterable[ViewSegment] | SessionVisibility
) -> float:
    """Return the same bound for a policy's own boundaries and the sizes of its own summaries.

    Stakes carried by rows that it keeps count as carried.
    """
    sights = SessionVisibility.from_segments(measure.reading, segments)
    summaries = {sight.segment.call: sight.segment.summary for sight in sights.all}
    met = {
        stake
        for stake in measure.stakes
        if sights.find(stake.call).has_key_outside_summary(stake.key, stake.call)
    }
    rest = _group_by_segment(measure, (stake for stake in measure.stakes if stake not in met))
    return len(met) + sum(
        _max_stakes(measure, stakes, len(summaries.get(boundary.call, "")))
        for boundary, stakes in zip(measure.boundaries, rest, strict=True)
    )


def _group_by_segment(
    measure: FidelityMeasure, stakes: Iterable[LaterReference]
) -> list[list[LaterReference]]:
    segments: list[list[LaterReference]] = [[] for _ in measure.boundaries]
    for stake in stakes:
        segments[stake.segment].append(stake)
    return segments


def _max_stakes(
    measure: FidelityMeasure, stakes: Sequence[LaterReference], characters: int
) -> float:
    # The last fact of a text needs no separator.
    room = characters + 1.0
    most = 0.0
    for share in sorted(compute_cost_shares(measure, stakes)):
        if share > room:
            return most + room / share
        most += 1
        room -= share
    return most


def compute_cost_shares(
    measure: FidelityMeasure, stakes: Sequence[LaterReference]
) -> Iterable[float]:
    """Return, for each stake, the fewest characters that carrying it costs.

    The cost of a fact, or of a tail of one, is shared equally by the stakes that it carries.
    """
    if not stakes:
        return ()
    reading = measure.reading
    kept = reading.find_index(measure.boundaries[stakes[0].segment].first_kept)
    wanted = {stake.key: stake for stake in stakes}
    cheapest = dict.fromkeys(wanted, float("inf"))
    items = {(key, stake.kind) for key, stake in wanted.items()}
    for key in wanted:
        items.update(
            (part, fact.kind)
            for fact in reading.carriers.get(key, ())
            if fact.first < kept
            for part in fact.parts
            if key in list_carried_keys(Anchor(part, fact.kind, 0, 0))
        )
    for item, kind in items:
        carried = {*list_carried_keys(Anchor(item, kind, 0, 0))} & wanted.keys()
        for key in carried:
            cheapest[key] = min(cheapest[key], _count_characters(item) / len(carried))
    return cheapest.values()


def _count_characters(item: str) -> int:
    """Return its length, with a separator; only a percent sign needs none."""
    return len(item) + (not item.endswith("%"))

"""Computes an upper bound on the stakes that any text of a given size could carry."""

from collections.abc import Iterable, Sequence

from .anchors import Anchor, list_carried_keys
from .fidelity_measure import FidelityMeasure
from .later_references import LaterReference
from .segments import ViewSegment
from .visibility import SessionVisibility

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

"""The most that any text of a given size could carry of what is at stake, copied or composed."""

from collections.abc import Iterable, Sequence

from .anchors import Anchor, carried_by
from .measure import Measure
from .sight import Sights
from .spells import Spell
from .stakes import Stake

CHARACTERS = 4
"""Of one token."""


def bound(measure: Measure, budget: int | Sequence[int]) -> float:
    """Stakes, of all boundaries together; `budget` is in tokens, of all texts or of each.

    Facts of a text never overlap, so that a text is at least as long as all its facts. Each key
    at stake is charged its cheapest equal share of what carries it, and the cheapest are taken
    until the text is full, the last in part: no text does better. It is a bound and no text.
    """
    budgets = [budget] * len(measure.boundaries) if isinstance(budget, int) else budget
    by_segment = _by_segment(measure, measure.stakes)
    return sum(
        _most(measure, stakes, CHARACTERS * tokens)
        for stakes, tokens in zip(by_segment, budgets, strict=True)
    )


def own_bound(measure: Measure, spells: Iterable[Spell] | Sights) -> float:
    """The same of a policy's own boundaries and the sizes of its own summaries.

    What rows carry that it keeps behind its boundaries counts as met.
    """
    sights = Sights.of(measure.reading, spells)
    summaries = {sight.spell.call: sight.spell.summary for sight in sights.all}
    met = {stake for stake in measure.stakes if sights.at(stake.call).keeps(stake.key, stake.call)}
    rest = _by_segment(measure, (stake for stake in measure.stakes if stake not in met))
    return len(met) + sum(
        _most(measure, stakes, len(summaries.get(boundary.call, "")))
        for boundary, stakes in zip(measure.boundaries, rest, strict=True)
    )


def _by_segment(measure: Measure, stakes: Iterable[Stake]) -> list[list[Stake]]:
    segments: list[list[Stake]] = [[] for _ in measure.boundaries]
    for stake in stakes:
        segments[stake.segment].append(stake)
    return segments


def _most(measure: Measure, stakes: Sequence[Stake], characters: int) -> float:
    """Of the stakes of one segment."""
    # The last fact of a text needs nothing that parts it from another.
    room = characters + 1.0
    most = 0.0
    for share in sorted(shares(measure, stakes)):
        if share > room:
            return most + room / share
        most += 1
        room -= share
    return most


def shares(measure: Measure, stakes: Sequence[Stake]) -> Iterable[float]:
    """Of each stake the fewest characters that any fact, or tail of one, costs for carrying it.

    What a fact costs is shared equally by the stakes that it carries.
    """
    if not stakes:
        return ()
    reading = measure.reading
    kept = reading.index_at(measure.boundaries[stakes[0].segment].first_kept)
    wanted = {stake.key: stake for stake in stakes}
    cheapest = dict.fromkeys(wanted, float("inf"))
    items = {(key, stake.kind) for key, stake in wanted.items()}
    for key in wanted:
        items.update(
            (part, fact.kind)
            for fact in reading.carriers.get(key, ())
            if fact.first < kept
            for part in fact.parts
            if key in carried_by(Anchor(part, fact.kind, 0, 0))
        )
    for item, kind in items:
        carried = {*carried_by(Anchor(item, kind, 0, 0))} & wanted.keys()
        for key in carried:
            cheapest[key] = min(cheapest[key], _characters(item) / len(carried))
    return cheapest.values()


def _characters(item: str) -> int:
    """Its own, and one that parts it from the next: only a percent sign parts by itself."""
    return len(item) + (not item.endswith("%"))

"""How much of what was at stake a policy's views still carried when it was needed."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from .anchors import AnchorKind
from .beside import Beside
from .canonical import Boundary
from .reading import Reading, first_seen
from .rows import Said
from .scores import Scores
from .sight import Sights
from .spells import WHOLE, Spell
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
        self._carried: dict[str, frozenset[str]] = {}

    @cached_property
    def stakes(self) -> tuple[Stake, ...]:
        """Those that count in R."""
        return tuple(
            stake for stake in self.candidates if not stake.is_generic and not stake.is_lifted
        )

    def scores(self, spells: Iterable[Spell]) -> Scores:
        """Counts of all stakes and of those that the views carry; ratios are theirs."""
        spells = tuple(spells)
        views = _Views(self, spells)
        with_generic = [stake for stake in self.candidates if not stake.is_lifted]
        loose = [stake for stake in self.candidates if not stake.is_generic]
        hit = [stake for stake in self.stakes if views.carry(stake)]
        hard = [stake for stake in self.stakes if stake.is_hard]
        facts = Scores(
            boundaries=len(self.boundaries),
            stakes=len(self.stakes),
            hits=len(hit),
            hard_stakes=len(hard),
            hard_hits=sum(stake.is_hard for stake in hit),
            uses=sum(stake.uses for stake in self.stakes),
            uses_hit=sum(stake.uses for stake in hit),
            generic_stakes=len(with_generic),
            generic_hits=sum(map(views.carry, with_generic)),
            loose_stakes=len(loose),
            loose_hits=sum(map(views.carry_loosely, loose)),
        )
        return facts + self.beside.scores(Sights(self.reading, spells), hit)

    def hits(self, spells: Iterable[Spell]) -> tuple[Stake, ...]:
        """The stakes that the views carry."""
        views = _Views(self, spells)
        return tuple(stake for stake in self.stakes if views.carry(stake))

    def lost(self, spells: Iterable[Spell]) -> tuple[LostKey, ...]:
        """The others, in the order in which they were needed."""
        views = _Views(self, spells)
        return tuple(
            LostKey(stake.key, stake.kind, stake.call, stake.hidden_in)
            for stake in self.stakes
            if not views.carry(stake)
        )

    def carried(self, text: str) -> frozenset[str]:
        """The keys that a text carries, read once: summaries and trimmed results come again."""
        keys = self._carried.get(text)
        if keys is None:
            keys = self._carried[text] = frozenset(self.reading.words.carried(text))
        return keys


class _Views:
    """What one policy sent at each call."""

    def __init__(self, measure: Measure, spells: Iterable[Spell]) -> None:
        self._measure = measure
        self._spells = sorted(spells, key=lambda spell: spell.call)
        self._calls = [spell.call for spell in self._spells]

    def carry(self, stake: Stake) -> bool:
        """Whether the view of the call that needed it had the fact."""
        return self._carry(stake, behind=None)

    def carry_loosely(self, stake: Stake) -> bool:
        """The same, where nothing counts that a tool said once the boundary was drawn."""
        return self._carry(stake, behind=self._measure.boundaries[stake.segment].call)

    def _carry(self, stake: Stake, behind: int | None) -> bool:
        spell = self._at(stake.call)
        measure = self._measure
        if stake.key in measure.carried(spell.summary):
            return True
        reading = measure.reading
        rows = reading.rows.rows
        # The newest first: most of what shows stands at the end.
        for place in reversed(reading.places.get(stake.key, ())):
            row = rows[place]
            seen = first_seen(row)
            if seen > stake.call or row.position in spell.shown:
                continue
            if behind is not None and row.said is Said.TOOL_RESULT and seen > behind:
                continue
            if row.position > spell.after or row.position in spell.kept:
                return True
        return any(
            stake.key in measure.carried(text)
            for position, text in spell.shown.items()
            if behind is None or not self._came_again(position, behind)
        )

    def _at(self, call: int) -> Spell:
        at = bisect_right(self._calls, call)
        return self._spells[at - 1] if at else WHOLE

    def _came_again(self, position: int, behind: int) -> bool:
        reading = self._measure.reading
        row = reading.rows.rows[reading.index_at(position)]
        return row.said is Said.TOOL_RESULT and first_seen(row) > behind

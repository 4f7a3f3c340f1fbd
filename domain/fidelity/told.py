"""A text that stands for history, as a summary does, read once for all that is measured."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .anchors import Anchor, AnchorKind, carried_by
from .plain_words import Pair, PlainWords, Spot
from .words import Words

NEAR = 100
"""Characters around a fact that are its context."""
APART = 3
"""How many plain words a pair's second may come after its first in a summary."""


@dataclass(frozen=True)
class Told:
    """What one text carries: each facet is read when it is first asked for."""

    text: str
    words: Words
    plain: PlainWords

    @cached_property
    def carried(self) -> frozenset[str]:
        """The keys that some fact of the text carries."""
        return frozenset(self.words.carried(self.text))

    @cached_property
    def facts(self) -> Mapping[str, AnchorKind]:
        """The facts that stand in it themselves."""
        return self.words.facts(self.text)

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """Pairs of plain words that stand near each other in a line."""
        return frozenset(
            pair for line in self.plain.lines(self.text) for pair in pairs_within(line, APART)
        )

    @cached_property
    def bag(self) -> frozenset[str]:
        """Its plain words."""
        return self.plain.words(self.text)

    def near(self, key: str) -> list[frozenset[str]]:
        """The plain words around each occurrence of what carries a key."""
        return [around(self._spots, place) for place in self._places.get(key, ())]

    @cached_property
    def _spots(self) -> list[Spot]:
        return self.plain.spots(self.text)

    @cached_property
    def _places(self) -> Mapping[str, Sequence[Anchor]]:
        places: dict[str, list[Anchor]] = {}
        for anchor in self.words.anchors(self.text):
            for key in carried_by(anchor):
                places.setdefault(key, []).append(anchor)
        return places


def pairs_within(words: Sequence[str], apart: int) -> set[Pair]:
    """The pairs of different words of a line of which one comes at most so many after the other."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }


def around(spots: Sequence[Spot], anchor: Anchor) -> frozenset[str]:
    """The words that stand as a whole within reach of a fact."""
    first, last = anchor.start - NEAR, anchor.end + NEAR
    begin = bisect_left(spots, first, key=lambda spot: spot.start)
    end = bisect_right(spots, last, key=lambda spot: spot.end)
    return frozenset(spot.word for spot in spots[begin:end])

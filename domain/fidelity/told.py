"""A text that stands for history, as a summary does, read once for all that is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .anchors import AnchorKind
from .plain_words import Pair, PlainWords
from .words import Words

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
        return frozenset(pair for line in self._lines for pair in pairs_within(line, APART))

    @cached_property
    def bag(self) -> frozenset[str]:
        """Its plain words."""
        return frozenset(word for line in self._lines for word in line)

    @cached_property
    def _lines(self) -> list[list[str]]:
        return list(self.plain.lines(self.text))


def pairs_within(words: Sequence[str], apart: int) -> set[Pair]:
    """The pairs of different words of a line of which one comes at most so many after the other."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }

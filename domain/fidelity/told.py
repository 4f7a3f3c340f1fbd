"""A text that stands for history, as a summary does, read once for all that is measured."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from .plain_words import Pair, PlainWords
from .words import Words

Read = TypeVar("Read")

APART = 3
"""How many plain words a pair's second may come after its first in a summary."""


class Lines:
    """What lines carry, each read once: a summary has most of its lines from the one before.

    No fact and no pair reaches over a line's end.
    """

    def __init__(self, words: Words, plain: PlainWords) -> None:
        self.carried = _Once(words.carried)
        """Of each line the keys that some fact in it carries."""
        self.facts = _Once(words.facts)
        """The facts that stand in it themselves."""
        self.bag = _Once(plain.words)
        """Its plain words."""
        self.pairs = _Once(
            lambda line: {
                pair for words in plain.lines(line) for pair in pairs_within(words, APART)
            }
        )
        """Pairs of plain words that stand near each other in it."""


class _Once(dict[str, frozenset[Read]]):
    def __init__(self, read: Callable[[str], Iterable[Read]]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, line: str) -> frozenset[Read]:
        found = self[line] = frozenset(self._read(line))
        return found

    def all(self, lines: Iterable[str]) -> frozenset[Read]:
        """What the lines have together."""
        return frozenset[Read]().union(*map(self.__getitem__, lines))


@dataclass(frozen=True)
class Told:
    """What one text carries: each facet is read when it is first asked for."""

    text: str
    lines: Lines

    @cached_property
    def carried(self) -> frozenset[str]:
        """The keys that some fact of the text carries."""
        return self.lines.carried.all(self._lines)

    @cached_property
    def facts(self) -> frozenset[str]:
        """The facts that stand in it themselves."""
        return self.lines.facts.all(self._lines)

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """Pairs of plain words that stand near each other in a line."""
        return self.lines.pairs.all(self._lines)

    @cached_property
    def bag(self) -> frozenset[str]:
        """Its plain words."""
        return self.lines.bag.all(self._lines)

    @property
    def _lines(self) -> set[str]:
        return set(self.text.split("\n"))


def pairs_within(words: Sequence[str], apart: int) -> set[Pair]:
    """The pairs of different words of a line of which one comes at most so many after the other."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }

"""The plain words of a text: what prose is made of once facts and filler are left out."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .anchors import anchors_of
from .patterns import ACROSS

# Letters of Latin scripts; what has a capital inside is a name, and is taken for a fact.
_WORD = re.compile(r"\b[A-Za-zÀ-ÖØ-öø-ÿ][a-zß-öø-ÿ]{3,}\b")

STOPPED = frozenset(
    """
    about after also anyway been before being could done each else ever from goes going have here
    into just know let's lets like make many more much must need only other ours over please
    really should since some such sure than that their them then there these they thing things
    this those through under upon very want well were what when which will with would your yours
    code false file files line lines none null true
    """.split()
)
"""Words that stand beside anything: of grammar, and of any talk about programs."""


Pair = tuple[str, str]
"""Two words in alphabetical order: prose says them either way."""


class Spot(NamedTuple):
    """A plain word, in lower case, and where it stands."""

    word: str
    start: int
    end: int


class PlainWords:
    """Reads the plain words of many texts that have most of their words in common."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = tuple(roots)
        self._of = _PlainWordsOf(self._roots)

    def lines(self, text: str) -> Iterator[list[str]]:
        """Line by line the plain words, in order, in lower case."""
        for line in text.split("\n"):
            if ACROSS.search(line) is None:
                # No fact reaches over white space here: each word can be read alone.
                words = [word for piece in line.split() for word in self._of[piece]]
            else:
                words = [spot.word for spot in self.spots(line)]
            if words:
                yield words

    def words(self, text: str) -> frozenset[str]:
        """The different plain words of a text."""
        return frozenset(word for line in self.lines(text) for word in line)

    def spots(self, text: str) -> list[Spot]:
        """The plain words with their places."""
        return list(_spots(text, self._roots))


class _PlainWordsOf(dict[str, tuple[str, ...]]):
    """Of each piece of text without white space the plain words in it."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = roots

    def __missing__(self, piece: str) -> tuple[str, ...]:
        words = tuple(spot.word for spot in _spots(piece, self._roots))
        self[piece] = words
        return words


def _spots(text: str, roots: tuple[str, ...]) -> Iterator[Spot]:
    for found in _WORD.finditer(_without_facts(text, roots)):
        word = found[0].lower()
        if word not in STOPPED:
            yield Spot(word, found.start(), found.end())


def _without_facts(text: str, roots: tuple[str, ...]) -> str:
    """The text with each fact blotted out, so that all else stands where it stood."""
    parts: list[str] = []
    at = 0
    for anchor in anchors_of(text, roots):
        # An underscore is no end of a word: nothing that touches a fact becomes a plain word.
        parts += (text[at : anchor.start], "_" * (anchor.end - anchor.start))
        at = anchor.end
    return "".join((*parts, text[at:]))

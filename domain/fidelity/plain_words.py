"""The plain words of a text: what prose is made of once facts and filler are left out."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .anchors import Anchor, anchors_of
from .patterns import ACROSS, TELLING

# Letters of Latin scripts; what has a capital inside is a name, and is taken for a fact.
_WORD = re.compile(r"\b[A-Za-zÀ-ÖØ-öø-ÿ][a-zß-öø-ÿ]{3,}\b")

_STOPPED = """
    about after also anyway been before being could done each else ever from goes going have here
    into just know lets like make many more much must need only other ours over please
    really should since some such sure than that their them then there these they thing things
    this those through under upon very want well were what when which will with would your yours
    code false file files line lines none null true
"""
STOPPED = frozenset(_STOPPED.split())
"""Words that stand beside anything: of grammar, and of any talk about programs."""


Pair = tuple[str, str]
"""Two words in alphabetical order: prose says them either way."""


class Spot(NamedTuple):
    """A plain word, in lower case, and where it stands."""

    word: str
    start: int
    end: int


class Line(NamedTuple):
    """A line of text, with what stands in it from left to right."""

    facts: tuple[Anchor, ...]
    spots: tuple[Spot, ...]


class PlainWords:
    """Reads the plain words of many texts that have most of their lines and words in common."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = tuple(roots)
        self._of = _PlainWordsOf(self._roots)
        self._lines: dict[str, Line] = {}

    def lines(self, text: str) -> Iterator[list[str]]:
        """Line by line the plain words, in order, in lower case."""
        for line in text.split("\n"):
            if ACROSS.search(line) is None:
                # No fact reaches over white space here: each word can be read alone.
                words = [word for piece in line.split() for word in self._of[piece]]
            else:
                words = [spot.word for spot in self.line(line).spots]
            if words:
                yield words

    def words(self, text: str) -> frozenset[str]:
        """The different plain words of a text."""
        return frozenset(word for line in self.lines(text) for word in line)

    def line(self, text: str) -> Line:
        """One line, with places; it is read once."""
        line = self._lines.get(text)
        if line is None:
            line = self._lines[text] = _read(text, self._roots)
        return line


class _PlainWordsOf(dict[str, tuple[str, ...]]):
    """Of each piece of text without white space the plain words in it."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = roots

    def __missing__(self, piece: str) -> tuple[str, ...]:
        words: tuple[str, ...] = ()
        # Most pieces that hold facts hold nothing that could be a word.
        if _WORD.search(piece):
            words = tuple(spot.word for spot in _read(piece, self._roots).spots)
        self[piece] = words
        return words


def _read(line: str, roots: tuple[str, ...]) -> Line:
    facts = tuple(anchors_of(line, roots)) if TELLING.search(line) else ()
    return Line(facts, tuple(_spots(_without(facts, line))))


def _spots(text: str) -> Iterator[Spot]:
    for found in _WORD.finditer(text):
        word = found[0].lower()
        if word not in STOPPED:
            yield Spot(word, found.start(), found.end())


def _without(facts: Iterable[Anchor], text: str) -> str:
    """The text with each fact blotted out, so that all else stands where it stood."""
    parts: list[str] = []
    at = 0
    for fact in facts:
        # An underscore is no end of a word: nothing that touches a fact becomes a plain word.
        parts += (text[at : fact.start], "_" * (fact.end - fact.start))
        at = fact.end
    return "".join((*parts, text[at:])) if parts else text

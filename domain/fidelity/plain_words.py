"""The plain words of a text: what prose is made of once facts and filler are left out."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .anchors import LINE, Anchor, carried_by, longest_first_of, pieces_of, scanned
from .patterns import ACROSS, TELLING

# Letters of Latin scripts; what has a capital inside is a name, and is taken for a fact.
_WORD = re.compile(r"\b[A-Za-zÀ-ÖØ-öø-ÿ][a-zß-öø-ÿ]{3,}\b")
_STRETCH = re.compile(r"\S+")

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


class Piece(NamedTuple):
    """What stands in a stretch of a line that can be read alone."""

    line: Line
    """With places, counted from where the stretch begins."""
    facts: tuple[str, ...]
    """The keys of the facts in it."""
    carried: tuple[str, ...]
    """The keys that these carry."""
    words: tuple[str, ...]
    """Its plain words, in order."""


class PlainWords:
    """Reads the plain words of many texts that have most of their lines and words in common."""

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = longest_first_of(roots)
        self._pieces = _Pieces(self._roots)
        self._lines: dict[str, Line] = {}

    def lines(self, text: str) -> Iterator[list[str]]:
        """Line by line the plain words, in order, in lower case."""
        for line in text.split("\n"):
            if words := [word for piece in self.pieces(line) for word in piece.words]:
                yield words

    def words(self, text: str) -> frozenset[str]:
        """The different plain words of a text."""
        return frozenset(word for line in self.lines(text) for word in line)

    def pieces(self, line: str) -> list[Piece]:
        """What stands in one line, from left to right."""
        if ACROSS.search(line) is None:
            # No fact reaches over white space here: each word can be read alone.
            return [self._pieces[word] for word in line.split()]
        return [_piece(self.line(line))]

    def line(self, text: str) -> Line:
        """One line, with places; it is read once."""
        line = self._lines.get(text)
        if line is None:
            line = self._lines[text] = self._placed(text)
        return line

    def _placed(self, text: str) -> Line:
        if len(text) > LINE or ACROSS.search(text):
            return _read(text, self._roots)
        facts: list[Anchor] = []
        spots: list[Spot] = []
        for found in _STRETCH.finditer(text):
            line, at = self._pieces[found[0]].line, found.start()
            facts += [Anchor(key, kind, at + a, at + b) for key, kind, a, b in line.facts]
            spots += [Spot(word, at + a, at + b) for word, a, b in line.spots]
        return Line(tuple(facts), tuple(spots))


_NOTHING = Piece(Line((), ()), (), (), ())


class _Pieces(dict[str, Piece]):
    """What stands in each stretch without white space; most are one of few."""

    def __init__(self, longest_first: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = longest_first

    def __missing__(self, text: str) -> Piece:
        piece = self[text] = _piece(_read(text, self._roots))
        return piece


def _piece(line: Line) -> Piece:
    if not line.facts and not line.spots:
        return _NOTHING
    return Piece(
        line,
        tuple([fact.key for fact in line.facts]),
        tuple([key for fact in line.facts for key in carried_by(fact)]),
        tuple([spot.word for spot in line.spots]),
    )


def _read(line: str, longest_first: tuple[str, ...]) -> Line:
    facts = _facts(line, longest_first) if TELLING.search(line) else ()
    rest = _without(facts, line) if facts else line
    return Line(facts, _spots(rest) if _WORD.search(rest) else ())


def _facts(line: str, longest_first: tuple[str, ...]) -> tuple[Anchor, ...]:
    if len(line) <= LINE:
        return tuple(scanned(line, longest_first))
    parts = pieces_of(line)
    return tuple(fact for start, part in parts for fact in scanned(part, longest_first, start))


def _spots(text: str) -> tuple[Spot, ...]:
    found = ((word[0].lower(), word.start(), word.end()) for word in _WORD.finditer(text))
    return tuple(Spot(*spot) for spot in found if spot[0] not in STOPPED)


def _without(facts: Iterable[Anchor], text: str) -> str:
    """The text with each fact blotted out, so that all else stands where it stood."""
    parts: list[str] = []
    at = 0
    for fact in facts:
        # An underscore is no end of a word: nothing that touches a fact becomes a plain word.
        parts += (text[at : fact.start], "_" * (fact.end - fact.start))
        at = fact.end
    return "".join((*parts, text[at:]))

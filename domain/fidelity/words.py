"""Reads texts by their words: the facts that they carry, plain words, and what is around facts."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..cached_property import cached_property
from .anchors import (
    DISTINCTIVE_PATTERN,
    SEPARATORS,
    SEPARATORS_OUTSIDE_URLS,
    UNIT_NUMBER_PATTERN,
    Anchor,
    AnchorKind,
    find_anchors,
    list_carried_keys,
    sort_longest_first,
    split_pieces,
)

# Letters of Latin scripts; a word with a capital inside is a name and counts as a fact.
_WORD = re.compile(r"\b[A-Za-zÀ-ÖØ-öø-ÿ][a-zß-öø-ÿ]{3,}\b")

_STOP_WORDS = """
    about after also anyway been before being could done each else ever from goes going have here
    into just know lets like make many more much must need only other ours over please
    really should since some such sure than that their them then there these they thing things
    this those through under upon very want well were what when which will with would your yours
    code false file files line lines none null true
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that occur anywhere: grammar, and common words about programs."""


WordPair = tuple[str, str]
"""Two words in alphabetical order, since prose uses either order."""


class WordSpot(NamedTuple):
    """A plain word, in lower case, and its place."""

    word: str
    start: int
    end: int


class LinePiece:
    """The content of a line, or of a part of one that can be read separately."""

    def __init__(self, text: str, facts: tuple[Anchor, ...]) -> None:
        self._text = text
        self.facts = facts
        self.carried_keys = tuple([key for fact in facts for key in list_carried_keys(fact)])
        """The keys that its facts carry."""

    @cached_property
    def spots(self) -> tuple[WordSpot, ...]:
        """Its plain words with their places."""
        return _find_word_spots(_blank_out(self.facts, self._text) if self.facts else self._text)

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple([spot.word for spot in self.spots])


class WordReader:
    """Reads many texts that share most of their words, and each word once.

    Only a number with its unit contains white space, so what another word carries does not depend
    on its place.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = sort_longest_first(roots)
        self._pieces = _PieceCache(self._roots)
        self._plain: set[str] = set()
        """The words read so far that hold no facts."""
        self._texts: dict[str, list[LinePiece]] = {}

    def __len__(self) -> int:
        """Return how many words and lines it remembers."""
        return len(self._pieces) + len(self._plain)

    # Whole texts

    def find_carried_keys(self, text: str) -> frozenset[str]:
        """Return the keys that the facts of the text carry."""
        pieces = self._list_fact_pieces(text)
        return frozenset[str]().union(*[piece.carried_keys for piece in pieces])

    def find_facts(self, text: str) -> dict[str, AnchorKind]:
        """Return the facts written in the text, with their kinds."""
        found: dict[str, AnchorKind] = {}
        for piece in self._list_fact_pieces(text):
            for fact in piece.facts:
                found.setdefault(fact.key, fact.kind)
        return found

    def find_anchors(self, text: str) -> Iterator[Anchor]:
        """Yield each fact with its place, without the cache."""
        return find_anchors(text, self._roots)

    def _list_fact_pieces(self, text: str) -> list[LinePiece]:
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = self.list_fact_pieces(text)
        return known

    def list_fact_pieces(self, text: str) -> list[LinePiece]:
        """Return the words of a text that hold facts, and the lines that must be read whole.

        The text is not kept.
        """
        words, lines = _split_words(text)
        words -= self._plain
        telling = {w for w in filter(DISTINCTIVE_PATTERN.search, words) if self._pieces[w].facts}
        self._plain |= words - telling
        # Sorted, because one key may have two kinds and the first counts.
        return [self._pieces[one] for one in (*sorted(telling), *lines)]

    # Lines

    def iter_line_words(self, text: str) -> Iterator[list[str]]:
        """Yield the plain words of each line, in order, in lower case."""
        for line in text.split("\n"):
            if words := [word for piece in self.split_pieces(line) for word in piece.words]:
                yield words

    def collect_words(self, text: str) -> frozenset[str]:
        return frozenset(word for line in self.iter_line_words(text) for word in line)

    def split_pieces(self, line: str) -> list[LinePiece]:
        """Return the pieces of one line, from left to right."""
        if UNIT_NUMBER_PATTERN.search(line) is None:
            # No fact contains white space here, so each word can be read separately.
            return [self._pieces[word] for word in _split_on_separators(line)]
        return [self._pieces[line]]

    def read_line(self, text: str) -> LinePiece:
        """Return one line, with the places of its facts and words."""
        return self._pieces[text]


class _PieceCache(dict[str, LinePiece]):
    """Parsed pieces by their text; few distinct ones make up most of a session."""

    def __init__(self, longest_first: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = longest_first

    def __missing__(self, text: str) -> LinePiece:
        is_plain = DISTINCTIVE_PATTERN.search(text) is None
        facts = () if is_plain else tuple(find_anchors(text, self._roots))
        piece = self[text] = LinePiece(text, facts)
        return piece


def _find_word_spots(text: str) -> tuple[WordSpot, ...]:
    found = [WordSpot(one[0].lower(), *one.span()) for one in _WORD.finditer(text)]
    return tuple([spot for spot in found if spot.word not in STOP_WORDS])


def _blank_out(facts: Iterable[Anchor], text: str) -> str:
    """Return the text with each fact overwritten, so that everything else keeps its place."""
    parts: list[str] = []
    at = 0
    for fact in facts:
        # An underscore does not end a word, so nothing next to a fact becomes a plain word.
        parts += (text[at : fact.start], "_" * (fact.end - fact.start))
        at = fact.end
    return "".join((*parts, text[at:]))


def _split_words(text: str) -> tuple[set[str], list[str]]:
    """Return the words that can be read separately, and the lines that must be read whole."""
    words: set[str] = set()
    whole: list[str] = []
    for _, piece in split_pieces(text):
        rest = piece
        if UNIT_NUMBER_PATTERN.search(piece):
            lines = piece.split("\n")
            measured = {line for line in lines if UNIT_NUMBER_PATTERN.search(line)}
            whole += dict.fromkeys(line for line in lines if line in measured)
            rest = "\n".join(line for line in lines if line not in measured)
        words.update(_split_on_separators(rest))
    return words, whole


def _split_on_separators(text: str) -> list[str]:
    """Return the words of a text without numbers with units, which can be read separately."""
    # An opening parenthesis stays: it ends a name and distinguishes a call from a file.
    apart = _ALWAYS if "://" in text else _WITHOUT_URLS
    told = text.replace("(", "( ").encode("utf-8", "surrogatepass")
    # Bytes, because translating text is many times slower.
    return told.translate(apart).decode("utf-8", "surrogatepass").split()


_ALWAYS, _WITHOUT_URLS = (
    bytes.maketrans(apart.encode(), b" " * len(apart))
    for apart in (SEPARATORS, SEPARATORS_OUTSIDE_URLS)
)

NEAR_CHARS = 100
"""Characters around a fact that count as its context."""
MIN_SHARED_WORDS = 2
"""How many of the words around a fact must be around it again."""


class WordContexts:
    """Finds and caches the plain words around facts."""

    def __init__(self, words: WordReader) -> None:
        self._words = words
        self._known: dict[tuple[str, str], tuple[frozenset[str], ...]] = {}

    def list_nearby_words(self, text: str, key: str) -> tuple[frozenset[str], ...]:
        """Return the plain words around each occurrence of a key in a text."""
        known = self._known.get((text, key))
        if known is None:
            known = tuple(
                frozenset(self._iter_words_between(text, first - NEAR_CHARS, last + NEAR_CHARS))
                for first, last in self._find_places(text, key)
            )
            self._known[text, key] = known
        return known

    def collect_words(self, text: str, key: str) -> frozenset[str]:
        """Return all plain words around a key in a text."""
        return frozenset[str]().union(*self.list_nearby_words(text, key))

    def _find_places(self, text: str, key: str) -> Iterator[tuple[int, int]]:
        """Yield the spans that carry the key, reading only lines that may contain it."""
        # A space may precede a unit.
        hint = key[: len(key) - len(key.lstrip("0123456789."))] if key[0].isdigit() else key
        end = -1
        while (found := text.find(hint, end + 1)) >= 0:
            start, end = _find_line_span(text, found)
            for fact in self._words.read_line(text[start:end]).facts:
                if key in fact.key and key in list_carried_keys(fact):
                    yield start + fact.start, start + fact.end

    def _iter_words_between(self, text: str, first: int, last: int) -> Iterator[str]:
        """Yield the plain words that lie wholly between two places, across lines."""
        end = max(first, 0) - 1
        while end < min(last, len(text)):
            start, end = _find_line_span(text, end + 1)
            spots = self._words.read_line(text[start:end]).spots
            begin = bisect_left(spots, first - start, key=lambda spot: spot.start)
            beyond = bisect_right(spots, last - start, key=lambda spot: spot.end)
            for spot in spots[begin:beyond]:
                yield spot.word


def _find_line_span(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, end if end >= 0 else len(text)

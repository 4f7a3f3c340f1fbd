"""Measures C: whether a carried fact still has words around it that explain it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from .anchors import list_carried_keys
from .plain_words import PlainWords

NEAR_CHARS = 100
"""Characters around a fact that count as its context."""
MIN_SHARED_WORDS = 2
"""How many of the words around a fact must be around it again."""


class WordContexts:
    """Finds and caches the plain words around facts."""

    def __init__(self, plain: PlainWords) -> None:
        self._plain = plain
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
        hint = _make_search_hint(key)
        end = -1
        while (found := text.find(hint, end + 1)) >= 0:
            start, end = _find_line_span(text, found)
            for fact in self._plain.parse_line(text[start:end]).facts:
                if key in fact.key and key in list_carried_keys(fact):
                    yield start + fact.start, start + fact.end

    def _iter_words_between(self, text: str, first: int, last: int) -> Iterator[str]:
        """Yield the plain words that lie wholly between two places, across lines."""
        end = max(first, 0) - 1
        while end < min(last, len(text)):
            start, end = _find_line_span(text, end + 1)
            spots = self._plain.parse_line(text[start:end]).word_spots
            begin = bisect_left(spots, first - start, key=lambda spot: spot.start)
            beyond = bisect_right(spots, last - start, key=lambda spot: spot.end)
            for spot in spots[begin:beyond]:
                yield spot.word


def is_context_kept(expected: frozenset[str], nears: Iterable[frozenset[str]]) -> bool:
    """Check whether some occurrence still has enough of the expected words around it."""
    return len(expected) >= MIN_SHARED_WORDS and any(
        len(words & expected) >= MIN_SHARED_WORDS for words in nears
    )


def _make_search_hint(key: str) -> str:
    """Return the part of a key that a text has verbatim; a space may precede a unit."""
    if key[0].isdigit():
        return key[: len(key) - len(key.lstrip("0123456789."))]
    return key


def _find_line_span(text: str, at: int) -> tuple[int, int]:
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, end if end >= 0 else len(text)

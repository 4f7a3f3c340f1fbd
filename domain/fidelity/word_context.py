"""C: whether a fact that the view carries still stands beside words that told what it is."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from .anchors import list_carried_keys
from .plain_words import PlainWords

NEAR_CHARS = 100
"""Characters around a fact that are its context."""
MIN_SHARED_WORDS = 2
"""How many of the words that stood around a fact have to stand around it again."""


class WordContexts:
    """The plain words around facts, wherever these stand."""

    def __init__(self, plain: PlainWords) -> None:
        self._plain = plain
        self._known: dict[tuple[str, str], tuple[frozenset[str], ...]] = {}

    def list_nearby_words(self, text: str, key: str) -> tuple[frozenset[str], ...]:
        """The plain words around each occurrence in a text of what carries a key."""
        known = self._known.get((text, key))
        if known is None:
            known = tuple(
                frozenset(self._iter_words_between(text, first - NEAR_CHARS, last + NEAR_CHARS))
                for first, last in self._find_places(text, key)
            )
            self._known[text, key] = known
        return known

    def collect_words(self, text: str, key: str) -> frozenset[str]:
        """All plain words around a key in a text."""
        return frozenset[str]().union(*self.list_nearby_words(text, key))

    def _find_places(self, text: str, key: str) -> Iterator[tuple[int, int]]:
        """Where what carries the key begins and ends; only lines are read that may have it."""
        hint = _make_search_hint(key)
        end = -1
        while (found := text.find(hint, end + 1)) >= 0:
            start, end = _find_line_span(text, found)
            for fact in self._plain.parse_line(text[start:end]).facts:
                if key in fact.key and key in list_carried_keys(fact):
                    yield start + fact.start, start + fact.end

    def _iter_words_between(self, text: str, first: int, last: int) -> Iterator[str]:
        """The plain words that stand there as a whole, whatever lines they are in."""
        end = max(first, 0) - 1
        while end < min(last, len(text)):
            start, end = _find_line_span(text, end + 1)
            spots = self._plain.parse_line(text[start:end]).word_spots
            begin = bisect_left(spots, first - start, key=lambda spot: spot.start)
            beyond = bisect_right(spots, last - start, key=lambda spot: spot.end)
            for spot in spots[begin:beyond]:
                yield spot.word


def is_context_kept(expected: frozenset[str], nears: Iterable[frozenset[str]]) -> bool:
    """Whether some occurrence still stands beside enough of the words that are expected."""
    return len(expected) >= MIN_SHARED_WORDS and any(
        len(words & expected) >= MIN_SHARED_WORDS for words in nears
    )


def _make_search_hint(key: str) -> str:
    """The beginning of a key that is in the text just so: a unit may stand apart."""
    if key[0].isdigit():
        return key[: len(key) - len(key.lstrip("0123456789."))]
    return key


def _find_line_span(text: str, at: int) -> tuple[int, int]:
    """Where the line begins and ends that a place is in."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, end if end >= 0 else len(text)

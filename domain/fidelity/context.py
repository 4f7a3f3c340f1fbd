"""C: whether a fact that the view carries still stands beside words that told what it is."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from .anchors import carried_by
from .plain_words import PlainWords

NEAR = 100
"""Characters around a fact that are its context."""
ENOUGH = 2
"""How many of the words that stood around a fact have to stand around it again."""


class Contexts:
    """The plain words around facts, wherever these stand."""

    def __init__(self, plain: PlainWords) -> None:
        self._plain = plain
        self._known: dict[tuple[str, str], tuple[frozenset[str], ...]] = {}

    def near(self, text: str, key: str) -> tuple[frozenset[str], ...]:
        """The plain words around each occurrence in a text of what carries a key."""
        known = self._known.get((text, key))
        if known is None:
            known = tuple(
                frozenset(self._between(text, first - NEAR, last + NEAR))
                for first, last in self._places(text, key)
            )
            self._known[text, key] = known
        return known

    def words(self, text: str, key: str) -> frozenset[str]:
        """All plain words around a key in a text."""
        return frozenset[str]().union(*self.near(text, key))

    def _places(self, text: str, key: str) -> Iterator[tuple[int, int]]:
        """Where what carries the key begins and ends; only lines are read that may have it."""
        hint = _hint(key)
        end = -1
        while (found := text.find(hint, end + 1)) >= 0:
            start, end = _line_at(text, found)
            for fact in self._plain.line(text[start:end]).facts:
                if key in fact.key and key in carried_by(fact):
                    yield start + fact.start, start + fact.end

    def _between(self, text: str, first: int, last: int) -> Iterator[str]:
        """The plain words that stand there as a whole, whatever lines they are in."""
        end = max(first, 0) - 1
        while end < min(last, len(text)):
            start, end = _line_at(text, end + 1)
            spots = self._plain.line(text[start:end]).spots
            begin = bisect_left(spots, first - start, key=lambda spot: spot.start)
            beyond = bisect_right(spots, last - start, key=lambda spot: spot.end)
            for spot in spots[begin:beyond]:
                yield spot.word


def is_kept(expected: frozenset[str], nears: Iterable[frozenset[str]]) -> bool:
    """Whether some occurrence still stands beside enough of the words that are expected."""
    return len(expected) >= ENOUGH and any(len(words & expected) >= ENOUGH for words in nears)


def _hint(key: str) -> str:
    """The beginning of a key that is in the text just so: a unit may stand apart."""
    if key[0].isdigit():
        return key[: len(key) - len(key.lstrip("0123456789."))]
    return key


def _line_at(text: str, at: int) -> tuple[int, int]:
    """Where the line begins and ends that a place is in."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, end if end >= 0 else len(text)

"""C: whether a fact that the view carries still stands beside words that told what it is."""

from collections.abc import Iterable, Iterator

from .anchors import Anchor, anchors_of, carried_by
from .plain_words import PlainWords
from .rows import Rows
from .told import NEAR, around

ENOUGH = 2
"""How many of the words that stood around a fact have to stand around it again."""
_TOKEN = 200
"""Characters beside what is near that may belong to a word that reaches into it."""


class Contexts:
    """The plain words around facts in the rows of a session, each asked for once."""

    def __init__(self, rows: Rows, plain: PlainWords) -> None:
        self._rows = rows
        self._plain = plain
        self._known: dict[tuple[int, str], tuple[frozenset[str], ...]] = {}

    def near(self, index: int, key: str) -> tuple[frozenset[str], ...]:
        """The plain words around each occurrence in a row of what carries a key."""
        known = self._known.get((index, key))
        if known is None:
            text = self._rows.rows[index].text
            places = _places(text, key, self._rows.roots)
            known = self._known[index, key] = tuple(
                self._around(text, place) for place in places
            )
        return known

    def words(self, index: int, key: str) -> frozenset[str]:
        """All plain words around a key in a row."""
        return frozenset[str]().union(*self.near(index, key))

    def _around(self, text: str, place: Anchor) -> frozenset[str]:
        # As far as the next white space: where a word is cut it reads as another.
        first = _back(text, place.start - NEAR)
        last = _on(text, place.end + NEAR)
        here = Anchor(place.key, place.kind, place.start - first, place.end - first)
        return around(self._plain.spots(text[first:last]), here)


def is_kept(expected: frozenset[str], nears: Iterable[frozenset[str]]) -> bool:
    """Whether some occurrence still stands beside enough of the words that are expected."""
    return len(expected) >= ENOUGH and any(len(words & expected) >= ENOUGH for words in nears)


def _places(text: str, key: str, roots: tuple[str, ...]) -> Iterator[Anchor]:
    """Where a text spells out what carries a key; other lines are not read."""
    hint = _hint(key)
    start = 0
    for line in text.split("\n"):
        if hint in line:
            for anchor in anchors_of(line, roots):
                if key in carried_by(anchor):
                    yield anchor._replace(start=start + anchor.start, end=start + anchor.end)
        start += len(line) + 1


def _hint(key: str) -> str:
    """The beginning of a key that is in the text just so: a unit may stand apart."""
    if key[0].isdigit():
        return key[: len(key) - len(key.lstrip("0123456789."))]
    return key


def _back(text: str, at: int) -> int:
    """Where the word begins that a place lies in."""
    end = max(at - _TOKEN, 0)
    while at > end and not text[at - 1].isspace():
        at -= 1
    return max(at, 0)


def _on(text: str, at: int) -> int:
    """Where the word ends that a place lies in."""
    end = min(at + _TOKEN, len(text))
    while at < end and not text[at].isspace():
        at += 1
    return at

"""What the words of a session carry, each word read once."""

from collections.abc import Iterable, Iterator

from .anchors import (
    Anchor,
    AnchorKind,
    anchors_of,
    carried_by,
    longest_first_of,
    pieces_of,
    scanned,
)
from .patterns import ACROSS, ALWAYS_APART, APART_WITHOUT_URLS, TELLING


class Words:
    """Reads the facts of many texts that have most of their words in common.

    No fact but a number with its unit reaches over white space, so that what a word carries does
    not depend on where it stands.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = longest_first_of(roots)
        self._facts: dict[str, tuple[Anchor, ...]] = {}
        """Of each word that holds any its facts."""
        self._carried: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, tuple[set[str], list[str]]] = {}
        self._telling: set[str] = set()
        self._plain: set[str] = set()

    def carried(self, text: str) -> set[str]:
        """The keys that some fact of the text carries."""
        words, lines = self._spelled(text)
        keys = set[str]().union(*map(self._carried.__getitem__, words))
        for line in lines:
            for anchor in scanned(line, self._roots):
                keys.update(carried_by(anchor))
        return keys

    def facts(self, text: str) -> dict[str, AnchorKind]:
        """The keys of the facts that stand in the text themselves, and what these are."""
        words, lines = self._spelled(text)
        found: dict[str, AnchorKind] = {}
        # In the order of the alphabet, for one key may be of two kinds: the first counts.
        for word in sorted(words):
            for anchor in self._facts[word]:
                found.setdefault(anchor.key, anchor.kind)
        for line in lines:
            for anchor in scanned(line, self._roots):
                found.setdefault(anchor.key, anchor.kind)
        return found

    def anchors(self, text: str) -> Iterator[Anchor]:
        """Each fact with its place, read anew."""
        return anchors_of(text, self._roots)

    def _spelled(self, text: str) -> tuple[set[str], list[str]]:
        """The words of a text that hold facts, and the lines that cannot be read word by word."""
        spelled = self._texts.get(text)
        if spelled is None:
            words, lines = _parted(text)
            spelled = self._texts[text] = self._known(words), lines
        return spelled

    def _known(self, words: set[str]) -> set[str]:
        """Those of the words that hold facts; words that are new are read."""
        new = words - self._telling
        new -= self._plain
        telling = filter(TELLING.search, new)
        for word in telling:
            if facts := tuple(scanned(word, self._roots)):
                self._facts[word] = facts
                self._carried[word] = tuple({key for one in facts for key in carried_by(one)})
                self._telling.add(word)
        self._plain |= new - self._telling
        return words & self._telling


def _parted(text: str) -> tuple[set[str], list[str]]:
    """The words that can be read alone, and the lines that cannot be read word by word."""
    words: set[str] = set()
    whole: list[str] = []
    for _, piece in pieces_of(text):
        start = 0
        while found := ACROSS.search(piece, start):
            begin = piece.rfind("\n", 0, found.start()) + 1
            end = piece.find("\n", found.end())
            if begin > start:
                words.update(_words(piece[start:begin]))
            start = end if end >= 0 else len(piece)
            whole.append(piece[begin:start])
        words.update(_words(piece[start:] if start else piece))
    return words, whole


def _words(text: str) -> list[str]:
    # An opening parenthesis ends a name and tells that of a call from that of a file: it stays.
    apart = _ALWAYS if "://" in text else _WITHOUT_URLS
    told = text.replace("(", "( ").encode("utf-8", "surrogatepass")
    # As bytes, for text is translated many times as slowly.
    return told.translate(apart).decode("utf-8", "surrogatepass").split()


def _table(apart: str) -> bytes:
    spaces = " " * len(apart)
    return bytes.maketrans(apart.encode(), spaces.encode())


_ALWAYS = _table(ALWAYS_APART)
_WITHOUT_URLS = _table(APART_WITHOUT_URLS)

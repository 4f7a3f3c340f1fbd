"""What the words of a session carry, each word read once."""

from collections.abc import Iterable, Iterator

from .anchors import (
    Anchor,
    AnchorKind,
    find_anchors,
    list_carried_keys,
    scan_piece,
    sort_longest_first,
    split_pieces,
)
from .patterns import DISTINCTIVE_PATTERN, SEPARATORS, SEPARATORS_OUTSIDE_URLS, UNIT_NUMBER_PATTERN


class WordFacts:
    """Reads the facts of many texts that have most of their words in common.

    No fact but a number with its unit reaches over white space, so that what a word carries does
    not depend on where it stands.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = sort_longest_first(roots)
        self._facts: dict[str, tuple[Anchor, ...]] = {}
        """Of each word that holds any its facts."""
        self._carried: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, tuple[set[str], list[str]]] = {}
        self._telling: set[str] = set()
        self._plain: set[str] = set()

    def find_carried_keys(self, text: str) -> set[str]:
        """The keys that some fact of the text carries."""
        words, lines = self._split_fact_words(text)
        keys = set[str]().union(*map(self._carried.__getitem__, words))
        for line in lines:
            for anchor in scan_piece(line, self._roots):
                keys.update(list_carried_keys(anchor))
        return keys

    def find_facts(self, text: str) -> dict[str, AnchorKind]:
        """The keys of the facts that stand in the text themselves, and what these are."""
        words, lines = self._split_fact_words(text)
        found: dict[str, AnchorKind] = {}
        # In the order of the alphabet, for one key may be of two kinds: the first counts.
        for word in sorted(words):
            for anchor in self._facts[word]:
                found.setdefault(anchor.key, anchor.kind)
        for line in lines:
            for anchor in scan_piece(line, self._roots):
                found.setdefault(anchor.key, anchor.kind)
        return found

    def find_anchors(self, text: str) -> Iterator[Anchor]:
        """Each fact with its place, read anew."""
        return find_anchors(text, self._roots)

    def _split_fact_words(self, text: str) -> tuple[set[str], list[str]]:
        """The words of a text that hold facts, and the lines that cannot be read word by word."""
        spelled = self._texts.get(text)
        if spelled is None:
            words, lines = _split_words(text)
            spelled = self._texts[text] = self._filter_fact_words(words), lines
        return spelled

    def _filter_fact_words(self, words: set[str]) -> set[str]:
        """Those of the words that hold facts; words that are new are read."""
        new = words - self._telling
        new -= self._plain
        telling = filter(DISTINCTIVE_PATTERN.search, new)
        for word in telling:
            if facts := tuple(scan_piece(word, self._roots)):
                self._facts[word] = facts
                self._carried[word] = tuple(
                    {key for one in facts for key in list_carried_keys(one)}
                )
                self._telling.add(word)
        self._plain |= new - self._telling
        return words & self._telling


def _split_words(text: str) -> tuple[set[str], list[str]]:
    """The words that can be read alone, and the lines that cannot be read word by word."""
    words: set[str] = set()
    whole: list[str] = []
    for _, piece in split_pieces(text):
        start = 0
        while found := UNIT_NUMBER_PATTERN.search(piece, start):
            begin = piece.rfind("\n", 0, found.start()) + 1
            end = piece.find("\n", found.end())
            if begin > start:
                words.update(_split_on_separators(piece[start:begin]))
            start = end if end >= 0 else len(piece)
            whole.append(piece[begin:start])
        words.update(_split_on_separators(piece[start:] if start else piece))
    return words, whole


def _split_on_separators(text: str) -> list[str]:
    # An opening parenthesis ends a name and tells that of a call from that of a file: it stays.
    apart = _ALWAYS if "://" in text else _WITHOUT_URLS
    told = text.replace("(", "( ").encode("utf-8", "surrogatepass")
    # As bytes, for text is translated many times as slowly.
    return told.translate(apart).decode("utf-8", "surrogatepass").split()


def _make_table(apart: str) -> bytes:
    spaces = " " * len(apart)
    return bytes.maketrans(apart.encode(), spaces.encode())


_ALWAYS = _make_table(SEPARATORS)
_WITHOUT_URLS = _make_table(SEPARATORS_OUTSIDE_URLS)

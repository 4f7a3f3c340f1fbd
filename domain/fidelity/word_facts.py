"""Finds the facts that the words of a session carry, reading each word once."""

from collections.abc import Iterable, Iterator

from .anchors import (
    DISTINCTIVE_PATTERN,
    SEPARATORS,
    SEPARATORS_OUTSIDE_URLS,
    UNIT_NUMBER_PATTERN,
    Anchor,
    AnchorKind,
    find_anchors,
    list_carried_keys,
    scan_piece,
    sort_longest_first,
    split_pieces,
)


class WordFacts:
    """Reads the facts of many texts that share most of their words.

    Only a number with its unit contains white space, so what another word carries does not depend
    on its place.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = sort_longest_first(roots)
        self._facts: dict[str, tuple[Anchor, ...]] = {}
        """The facts of each word that holds any."""
        self._carried: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, tuple[set[str], list[str]]] = {}
        self._telling: set[str] = set()
        self._plain: set[str] = set()

    def find_carried_keys(self, text: str) -> set[str]:
        """Return the keys that the facts of the text carry."""
        words, lines = self._split_fact_words(text)
        keys = set[str]().union(*map(self._carried.__getitem__, words))
        for line in lines:
            for anchor in scan_piece(line, self._roots):
                keys.update(list_carried_keys(anchor))
        return keys

    def find_facts(self, text: str) -> dict[str, AnchorKind]:
        """Return the facts written in the text, with their kinds."""
        words, lines = self._split_fact_words(text)
        found: dict[str, AnchorKind] = {}
        # Sorted, because one key may have two kinds and the first counts.
        for word in sorted(words):
            for anchor in self._facts[word]:
                found.setdefault(anchor.key, anchor.kind)
        for line in lines:
            for anchor in scan_piece(line, self._roots):
                found.setdefault(anchor.key, anchor.kind)
        return found

    def find_anchors(self, text: str) -> Iterator[Anchor]:
        """Yield each fact with its place, without the cache."""
        return find_anchors(text, self._roots)

    def _split_fact_words(self, text: str) -> tuple[set[str], list[str]]:
        """Return the words of a text that hold facts, and the lines that must be read whole."""
        spelled = self._texts.get(text)
        if spelled is None:
            words, lines = _split_words(text)
            spelled = self._texts[text] = self._filter_fact_words(words), lines
        return spelled

    def _filter_fact_words(self, words: set[str]) -> set[str]:
        """Return the words that hold facts, after reading the new ones."""
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
    """Return the words that can be read separately, and the lines that must be read whole."""
    words: set[str] = set()
    whole: list[str] = []
    for _, piece in split_pieces(text):
        start = 0
        while found := UNIT_NUMBER_PATTERN.search(piece, start):
            begin = piece.rfind("\n", 0, found.start()) + 1
            end = piece.find("\n", found.end())
            if begin > start:
                words.update(split_on_separators(piece[start:begin]))
            start = end if end >= 0 else len(piece)
            whole.append(piece[begin:start])
        words.update(split_on_separators(piece[start:] if start else piece))
    return words, whole


def split_on_separators(text: str) -> list[str]:
    """Return the words of a text without numbers with units, which can be read separately."""
    # An opening parenthesis stays: it ends a name and distinguishes a call from a file.
    apart = _ALWAYS if "://" in text else _WITHOUT_URLS
    told = text.replace("(", "( ").encode("utf-8", "surrogatepass")
    # Bytes, because translating text is many times slower.
    return told.translate(apart).decode("utf-8", "surrogatepass").split()


def _make_table(apart: str) -> bytes:
    spaces = " " * len(apart)
    return bytes.maketrans(apart.encode(), spaces.encode())


_ALWAYS = _make_table(SEPARATORS)
_WITHOUT_URLS = _make_table(SEPARATORS_OUTSIDE_URLS)

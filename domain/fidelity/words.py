"""What the words of a session carry, each word read once."""

from collections.abc import Iterable, Iterator, Mapping

from .anchors import Anchor, AnchorKind, anchors_of, carried_by, pieces_of
from .patterns import ACROSS

Facts = Mapping[str, AnchorKind]


class Words:
    """Reads the facts of many texts that have most of their words in common.

    No fact but a number with its unit reaches over white space, so that what a word carries does
    not depend on where it stands.
    """

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self._roots = tuple(roots)
        self._carried = _Carried(self._roots)
        self._facts = _FactsOfWords(self._roots)

    def carried(self, text: str) -> set[str]:
        """The keys that some fact of the text carries."""
        words, lines = _parted(text)
        keys = set[str]().union(*map(self._carried.__getitem__, words))
        for line in lines:
            for anchor in anchors_of(line, self._roots):
                keys.update(carried_by(anchor))
        return keys

    def facts(self, text: str) -> dict[str, AnchorKind]:
        """The keys of the facts that stand in the text themselves, and what these are."""
        words, lines = _parted(text)
        found: dict[str, AnchorKind] = {}
        # In order, for a key may be of two kinds: the first is what it counts as.
        for word in dict.fromkeys(words):
            for key, kind in self._facts[word]:
                found.setdefault(key, kind)
        for line in lines:
            for anchor in anchors_of(line, self._roots):
                found.setdefault(anchor.key, anchor.kind)
        return found

    def anchors(self, text: str) -> Iterator[Anchor]:
        """Each fact with its place, read anew."""
        return anchors_of(text, self._roots)


class _Carried(dict[str, tuple[str, ...]]):
    """Of each word the keys that it carries."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = roots

    def __missing__(self, word: str) -> tuple[str, ...]:
        anchors = anchors_of(word, self._roots)
        keys = tuple({key: None for anchor in anchors for key in carried_by(anchor)})
        self[word] = keys
        return keys


class _FactsOfWords(dict[str, tuple[tuple[str, AnchorKind], ...]]):
    """Of each word the facts in it."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        super().__init__()
        self._roots = roots

    def __missing__(self, word: str) -> tuple[tuple[str, AnchorKind], ...]:
        facts = tuple((anchor.key, anchor.kind) for anchor in anchors_of(word, self._roots))
        self[word] = facts
        return facts


def _parted(text: str) -> tuple[list[str], list[str]]:
    """The words that can be read alone, and the lines that cannot be read word by word."""
    words: list[str] = []
    whole: list[str] = []
    for _, piece in pieces_of(text):
        if ACROSS.search(piece) is None:
            words += piece.split()
            continue
        for line in piece.split("\n"):
            if ACROSS.search(line) is None:
                words += line.split()
            else:
                whole.append(line)
    return words, whole

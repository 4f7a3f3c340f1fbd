"""Reads a summary once for all measures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from .anchors import MAX_LINE_CHARS, split_pieces
from .plain_words import LinePiece, PlainWords, WordPair

MAX_PAIR_DISTANCE = 3
"""How many plain words apart the two words of a pair may be in a summary."""


class LineContent(NamedTuple):
    """What one line carries, possibly with repetitions; no fact or pair spans lines."""

    carried_keys: Sequence[str]
    """The keys that its facts carry."""
    facts: Sequence[str]
    words: Sequence[str]
    pairs: Sequence[WordPair]
    """The wanted pairs whose words are close together in it."""


class LineCache(dict[str, LineContent]):
    """The content of lines, cached because a summary repeats most lines of the one before."""

    def __init__(self, plain: PlainWords, asked: Iterable[WordPair]) -> None:
        super().__init__()
        self._plain = plain
        self._asked = frozenset(either for a, b in asked for either in ((a, b), (b, a)))

    def __missing__(self, text: str) -> LineContent:
        pieces = self._plain.split_pieces(text)
        telling = [piece for piece in self._split_for_facts(text, pieces) if piece.facts]
        words = [word for piece in pieces for word in piece.words]
        line = self[text] = LineContent(
            [key for piece in telling for key in piece.carried_keys],
            [key for piece in telling for key in piece.facts],
            words,
            self._find_asked_pairs(words),
        )
        return line

    def _find_asked_pairs(self, words: Sequence[str]) -> Sequence[WordPair]:
        if len(words) < 2:
            return ()
        near = (
            zip(words, words[apart:], strict=False) for apart in range(1, MAX_PAIR_DISTANCE + 1)
        )
        found = self._asked.intersection(chain.from_iterable(near))
        return [(a, b) if a < b else (b, a) for a, b in found]

    def _split_for_facts(self, text: str, pieces: list[LinePiece]) -> Iterable[LinePiece]:
        """Return the pieces, read again in parts if the line is too long."""
        if len(text) <= MAX_LINE_CHARS:
            return pieces
        return (piece for _, part in split_pieces(text) for piece in self._plain.split_pieces(part))


@dataclass(frozen=True)
class SummaryContent:
    """What a text carries, computed on first access."""

    text: str
    lines: LineCache

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(line.carried_keys for line in self._line_contents))

    @cached_property
    def facts(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(line.facts for line in self._line_contents))

    @cached_property
    def pairs(self) -> frozenset[WordPair]:
        """The wanted pairs whose words are close together in a line."""
        return frozenset(chain.from_iterable(line.pairs for line in self._line_contents))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(line.words for line in self._line_contents))

    @cached_property
    def _line_contents(self) -> list[LineContent]:
        return [self.lines[line] for line in set(self.text.split("\n"))]


def find_pairs_within(words: Sequence[str], apart: int) -> set[WordPair]:
    """Return the pairs of different words that are at most `apart` words apart."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }

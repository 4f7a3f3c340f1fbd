"""A text that stands for history, as a summary does, read once for all that is measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from .anchors import MAX_LINE_CHARS, split_pieces
from .plain_words import LinePiece, PlainWords, WordPair

MAX_PAIR_DISTANCE = 3
"""How many plain words a pair's second may come after its first in a summary."""


class LineContent(NamedTuple):
    """What one line carries, some of it twice: no fact and no pair reaches over a line's end."""

    carried_keys: Sequence[str]
    """The keys that some fact in it carries."""
    facts: Sequence[str]
    """The facts that stand in it themselves."""
    words: Sequence[str]
    """Its plain words."""
    pairs: Sequence[WordPair]
    """Of the pairs of plain words that are asked for those that stand near each other in it."""


class LineCache(dict[str, LineContent]):
    """What lines carry, each read once: a summary has most of its lines from the one before."""

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
        """The same pieces, unless the line is too long for facts to be read across its cuts."""
        if len(text) <= MAX_LINE_CHARS:
            return pieces
        return (piece for _, part in split_pieces(text) for piece in self._plain.split_pieces(part))


@dataclass(frozen=True)
class SummaryContent:
    """What one text carries: each facet is put together when it is first asked for."""

    text: str
    lines: LineCache

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        """The keys that some fact of the text carries."""
        return frozenset(chain.from_iterable(line.carried_keys for line in self._line_contents))

    @cached_property
    def facts(self) -> frozenset[str]:
        """The facts that stand in it themselves."""
        return frozenset(chain.from_iterable(line.facts for line in self._line_contents))

    @cached_property
    def pairs(self) -> frozenset[WordPair]:
        """Of the pairs that are asked for those of which a line has both words near each other."""
        return frozenset(chain.from_iterable(line.pairs for line in self._line_contents))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its plain words."""
        return frozenset(chain.from_iterable(line.words for line in self._line_contents))

    @cached_property
    def _line_contents(self) -> list[LineContent]:
        return [self.lines[line] for line in set(self.text.split("\n"))]


def find_pairs_within(words: Sequence[str], apart: int) -> set[WordPair]:
    """The pairs of different words of a line of which one comes at most so many after the other."""
    return {
        (a, b) if a < b else (b, a)
        for distance in range(1, apart + 1)
        for a, b in zip(words, words[distance:], strict=False)
        if a != b
    }

"""Reads the prose of summaries and sessions: word pairs, and the rules that users stated."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from ..summaries.prose import remove_inserted_text
from .anchors import MAX_LINE_CHARS, split_pieces
from .generic_keys import GENERIC_PAIRS
from .rows import AGENT_KINDS, RowKind, SessionRows
from .words import LinePiece, WordPair, WordReader

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

    def __init__(self, words: WordReader, asked: Iterable[WordPair]) -> None:
        super().__init__()
        self._words = words
        self._asked = frozenset(either for a, b in asked for either in ((a, b), (b, a)))

    def __missing__(self, text: str) -> LineContent:
        pieces = self._words.split_pieces(text)
        telling = [piece for piece in self._split_for_facts(text, pieces) if piece.facts]
        words = [word for piece in pieces for word in piece.words]
        line = self[text] = LineContent(
            [key for piece in telling for key in piece.carried_keys],
            [fact.key for piece in telling for fact in piece.facts],
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
        return (piece for _, part in split_pieces(text) for piece in self._words.split_pieces(part))


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


PROSE_KINDS = frozenset({RowKind.USER, RowKind.ASSISTANT, RowKind.THINKING})


class RepeatedPair(NamedTuple):
    """A pair of words in the agent's prose that prose before the call contained already."""

    call: int
    pair: WordPair
    newest: int
    """Position of the newest row before the call that has it."""


@dataclass(frozen=True)
class ProsePairs:
    """Pairs of adjacent plain words in a session's prose, without generic ones."""

    places: Mapping[WordPair, Sequence[int]]
    """The indices of the rows with each pair, ascending."""
    repeated: Sequence[RepeatedPair]
    """In the order of the calls."""


def find_prose_pairs(
    rows: SessionRows, words: WordReader, seen_by: Callable[[int], int]
) -> ProsePairs:
    """Read all prose once; `seen_by` returns how many rows came before a call."""
    places: dict[WordPair, list[int]] = {}
    again: list[RepeatedPair] = []
    for index, row in enumerate(rows.rows):
        if row.kind not in PROSE_KINDS:
            continue
        pairs = _collect_pairs(row.text, words)
        if row.kind in AGENT_KINDS:
            below = seen_by(row.call)
            for pair in pairs:
                before = places.get(pair)
                if before and before[0] < below:
                    newest = before[bisect_left(before, below) - 1]
                    again.append(RepeatedPair(row.call, pair, rows.rows[newest].position))
        for pair in pairs:
            places.setdefault(pair, []).append(index)
    again.sort()
    return ProsePairs(places, again)


def _collect_pairs(text: str, words: WordReader) -> set[WordPair]:
    found: set[WordPair] = set()
    for line in words.iter_line_words(text):
        found |= find_pairs_within(line, 1)
    return found - GENERIC_PAIRS


_SURVIVAL_SHARE = 0.8
"""The share of a sentence's plain words that must remain."""

_CONSTRAINT = re.compile(
    r"""\b(?:
        must | mustn['\u2019]t | should | shouldn['\u2019]t | do\ not | don['\u2019]?t | cannot
        | can['\u2019]t | never | always | only | please | avoid | ensure | make\ sure | without
        | instead | require[ds]? | at\ least | at\ most | no\ more | not\ allowed | forbidden
        | prefer | keep | important
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
_END = re.compile(r"(?<=[.!?])\s+|\n+")
_MAX_SENTENCE_CHARS = 600
"""A longer text without an end is pasted, not a sentence."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A user's sentence that states a rule."""

    text: str
    words: frozenset[str]
    indices: tuple[int, ...]
    """The rows that contain it, ascending."""

    def is_kept_in(self, words: frozenset[str]) -> bool:
        return len(self.words & words) >= _SURVIVAL_SHARE * len(self.words)


def find_constraints(rows: SessionRows, words: WordReader) -> tuple[Constraint, ...]:
    """Return each distinct sentence once, in the order of first occurrence."""
    said: dict[str, list[int]] = {}
    for index, row in enumerate(rows.rows):
        if row.kind is RowKind.USER:
            for sentence in _split_sentences(remove_inserted_text(row.text)):
                said.setdefault(sentence, []).append(index)
    return tuple(
        Constraint(sentence, plain, tuple(dict.fromkeys(indices)))
        for sentence, indices in said.items()
        if (plain := words.collect_words(sentence))
    )


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        if len(sentence) <= _MAX_SENTENCE_CHARS and _CONSTRAINT.search(sentence):
            yield " ".join(sentence.split())

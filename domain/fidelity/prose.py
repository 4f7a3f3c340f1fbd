"""Reads the prose of summaries and sessions: word pairs, and the rules that users stated."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..summaries.prose import remove_inserted_text
from .generic_keys import GENERIC_PAIRS
from .rows import AGENT_KINDS, RowKind, SessionRows
from .words import WordPair, WordReader

MAX_PAIR_DISTANCE = 3
"""How many plain words apart the two words of a pair may be in a summary."""


@dataclass(frozen=True)
class SummaryContent:
    """What a text carries, computed on first access."""

    text: str
    reader: WordReader
    asked: frozenset[WordPair]
    """The pairs to look for."""

    @cached_property
    def carried_keys(self) -> frozenset[str]:
        return self.reader.find_carried_keys(self.text)

    @cached_property
    def facts(self) -> frozenset[str]:
        return frozenset(self.reader.find_facts(self.text))

    @cached_property
    def pairs(self) -> frozenset[WordPair]:
        """The wanted pairs whose words are close together in a line."""
        return frozenset(
            pair
            for words in self.reader.iter_line_words(self.text)
            for pair in find_pairs_within(words, MAX_PAIR_DISTANCE)
            if pair in self.asked
        )

    @cached_property
    def words(self) -> frozenset[str]:
        return self.reader.collect_words(self.text)


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

"""Measures P: whether words that the agent's prose used again were still visible."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .generic_keys import GENERIC_PAIRS
from .plain_words import PlainWords, WordPair
from .rows import AGENT_KINDS, RowKind, SessionRows
from .summary_content import find_pairs_within

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
    rows: SessionRows, plain: PlainWords, seen_by: Callable[[int], int]
) -> ProsePairs:
    """Read all prose once; `seen_by` returns how many rows came before a call."""
    places: dict[WordPair, list[int]] = {}
    again: list[RepeatedPair] = []
    for index, row in enumerate(rows.rows):
        if row.kind not in PROSE_KINDS:
            continue
        pairs = _collect_pairs(row.text, plain)
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


def _collect_pairs(text: str, plain: PlainWords) -> set[WordPair]:
    found: set[WordPair] = set()
    for line in plain.iter_line_words(text):
        found |= find_pairs_within(line, 1)
    return found - GENERIC_PAIRS

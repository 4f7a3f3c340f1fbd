"""P: whether words that the agent's prose took up again were still there to be read."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .generic import GENERIC_PAIRS
from .plain_words import Pair, PlainWords
from .rows import BY_AGENT, Rows, Said
from .told import pairs_within

PROSE = frozenset({Said.USER, Said.ASSISTANT, Said.THINKING})


class PairAgain(NamedTuple):
    """A pair of words that an agent's prose has, and that prose below the call had before."""

    call: int
    pair: Pair
    newest: int
    """Position of the newest row below the call that has it."""


@dataclass(frozen=True)
class ProsePairs:
    """Pairs of neighbouring plain words of a session's prose, generic ones left out."""

    places: Mapping[Pair, Sequence[int]]
    """Of each pair the indices of the rows that have it, ascending."""
    again: Sequence[PairAgain]
    """In the order of the calls."""


def prose_pairs(rows: Rows, plain: PlainWords, seen_by: Callable[[int], int]) -> ProsePairs:
    """Read all prose once; `seen_by` says how many rows lay below a call."""
    places: dict[Pair, list[int]] = {}
    again: list[PairAgain] = []
    for index, row in enumerate(rows.rows):
        if row.said not in PROSE:
            continue
        pairs = _pairs_of(row.text, plain)
        if row.said in BY_AGENT:
            below = seen_by(row.call)
            for pair in pairs:
                before = places.get(pair)
                if before and before[0] < below:
                    newest = before[bisect_left(before, below) - 1]
                    again.append(PairAgain(row.call, pair, rows.rows[newest].position))
        for pair in pairs:
            places.setdefault(pair, []).append(index)
    again.sort()
    return ProsePairs(places, again)


def _pairs_of(text: str, plain: PlainWords) -> set[Pair]:
    found: set[Pair] = set()
    for line in plain.lines(text):
        found |= pairs_within(line, 1)
    return found - GENERIC_PAIRS

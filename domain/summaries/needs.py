"""Estimates which facts and words of hidden blocks an agent will need again.

The weights are learned: `scripts/measure_summaries.py --learn` fits them to what the agents of
recorded sessions wrote again after it had left the view.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from math import exp, log
from operator import mul
from typing import NamedTuple

from ..blocks import ASSISTANT_KINDS, BlockKind
from ..fidelity.generic_keys import GENERIC_KEYS
from ..fidelity.words import WordPair
from ..item import WindowItem
from .statements import BlockContent, BlockReader, Statement

Features = tuple[float, ...]

FACT_WEIGHTS: Mapping[str, float] = {
    "bias": -1.83,
    "times": -0.27,
    "slow_age": 0.01,
    "fast_age": 1.39,
    "span": 0.73,
    "is_own": 0.50,
    "own_times": 0.95,
    "own_age": -1.32,
    "is_users": 0.46,
    "was_asked": 0.92,
    "is_path": -0.70,
    "is_flag": 0.90,
    "is_number": -0.45,
    "length": -0.26,
    "has_visible_part": 0.15,
    "history": -0.97,
}
PAIR_WEIGHTS: Mapping[str, float] = {
    "bias": -3.50,
    "times": 1.01,
    "slow_age": 0.93,
    "fast_age": -0.50,
    "has_visible_first": 0.51,
    "has_visible_second": 0.43,
    "has_visible_both": 0.30,
    "history": -0.70,
}
"""The learned weight of each feature, in the order in which the features are computed."""

_PARTS = re.compile(r"[./_]|::|->")
_NEAR_TOKENS = 4_000
_EARLIER_TIMES = 3
"""How often a fact counts that an earlier summary carries, whose blocks are not read again."""


class ReadItem(NamedTuple):
    item: WindowItem
    content: BlockContent


class NeedCounts:
    """What is counted of hidden blocks, in order, and of the blocks that stay.

    `earlier` are lines of an earlier summary whose blocks are not among those removed.
    """

    def __init__(
        self,
        removed: Sequence[ReadItem],
        kept: Sequence[BlockContent],
        earlier: Sequence[Statement] = (),
    ) -> None:
        self.removed = removed
        self.times, self.own = Counter[str](), Counter[str]()
        self.first, self.last, self.last_own = dict[str, int](), dict[str, int](), dict[str, int]()
        """The index of the oldest and newest block with each fact, and of the agent's newest."""
        self.pair_times, self.last_pair = Counter[WordPair](), dict[WordPair, int]()
        self.by_user = set[str]()
        for line in earlier:
            self.times.update(dict.fromkeys(line.facts, _EARLIER_TIMES))
            self.own.update(line.facts)
            self.pair_times.update(line.pairs)
        self.last |= dict.fromkeys(self.times, 0)
        self.last_pair |= dict.fromkeys(self.pair_times, 0)
        for index, (item, content) in enumerate(removed):
            self.times.update(content.facts)
            places = dict.fromkeys(content.facts, index)
            self.last |= places
            if item.kind in ASSISTANT_KINDS:
                self.own.update(content.facts)
                self.last_own |= places
            elif item.kind is BlockKind.USER:
                self.by_user |= content.facts
            for one in content.statements:
                if one.pairs:
                    self.pair_times.update(one.pairs)
                    self.last_pair |= dict.fromkeys(one.pairs, index)
        ages, age = [0] * len(removed), 0
        for index in range(len(ages) - 1, -1, -1):
            ages[index] = age
            age += removed[index].item.tokens
            self.first |= dict.fromkeys(removed[index].content.facts, index)
        self.size = max(age, 1)
        self.slow = [exp(-3 * one / self.size) for one in ages]
        self.fast = [exp(-one / _NEAR_TOKENS) for one in ages]
        self.kept_facts = frozenset[str]().union(*(one.facts for one in kept))
        self.kept_words = frozenset[str]().union(
            *(line.words for one in kept for line in one.statements)
        )
        self.kept_pairs = frozenset[WordPair]().union(
            *(line.pairs for one in kept for line in one.statements)
        )
        users = [one.content for one in removed if one.item.kind is BlockKind.USER][-2:]
        self.asked = frozenset[str]().union(*(one.facts for one in users))

    def iter_facts(self) -> Iterable[tuple[str, Features]]:
        """Yield the features of each fact that may be needed and that nothing else shows."""
        size, blocks = log(1 + self.size / 10_000), max(len(self.removed), 1)
        skipped = GENERIC_KEYS | self.kept_facts
        for fact, times in self.times.items():
            own = self.own.get(fact, 0)
            is_users = fact in self.by_user
            if fact in skipped or (times < 2 and not own and not is_users):
                continue
            last = self.last[fact]
            said = self.last_own.get(fact)
            yield (
                fact,
                (
                    1.0,
                    log(times),
                    self.slow[last],
                    self.fast[last],
                    (last - self.first.get(fact, 0)) / blocks,
                    float(own > 0),
                    log(1 + own),
                    0.0 if said is None else self.fast[said],
                    float(is_users),
                    float(fact in self.asked),
                    float("/" in fact),
                    float(fact[:2] == "--"),
                    float(fact[0].isdigit() or fact[0] == "#"),
                    log(len(fact)),
                    float(any(len(p) > 3 and p in self.kept_facts for p in _PARTS.split(fact))),
                    size,
                ),
            )

    def iter_pairs(self) -> Iterable[tuple[WordPair, Features]]:
        size = log(1 + self.size / 10_000)
        for pair, times in self.pair_times.items():
            if pair in self.kept_pairs:
                continue
            last = self.last_pair[pair]
            is_first, is_second = pair[0] in self.kept_words, pair[1] in self.kept_words
            yield (
                pair,
                (
                    1.0,
                    log(times),
                    self.slow[last],
                    self.fast[last],
                    float(is_first),
                    float(is_second),
                    float(is_first and is_second),
                    size,
                ),
            )

    def estimate(self) -> tuple[dict[str, float], dict[WordPair, float]]:
        """Return the probability that an agent writes each fact and each pair of words again."""
        fact_weights, pair_weights = tuple(FACT_WEIGHTS.values()), tuple(PAIR_WEIGHTS.values())
        return (
            {fact: _squash(features, fact_weights) for fact, features in self.iter_facts()},
            {pair: _squash(features, pair_weights) for pair, features in self.iter_pairs()},
        )


class LikelyFact(NamedTuple):
    text: str
    newest: int
    """The position of the newest block with it."""


def list_likely_facts(
    items: Sequence[WindowItem], kept: Sequence[WindowItem], count: int
) -> list[LikelyFact]:
    """Return the facts of `items` that are likeliest to be needed again, best first.

    A fact that another one contains is left out.
    """
    reader = BlockReader()
    counts = NeedCounts(
        [ReadItem(item, reader.read(item.block)) for item in items],
        [reader.read(item.block) for item in kept],
    )
    chances, _ = counts.estimate()
    best = nsmallest(count, chances, key=lambda fact: (-chances[fact], fact))
    return [
        LikelyFact(fact, items[counts.last[fact]].position)
        for fact in best
        if not any(fact != other and fact in other for other in best)
    ]


def _squash(features: Features, weights: Features) -> float:
    return 1 / (1 + exp(-sum(map(mul, features, weights))))

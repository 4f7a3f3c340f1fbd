"""Estimates which facts and words of hidden blocks an agent will need again.

The weights are learned: `scripts/measure_summaries.py --learn` fits them to what the agents of
recorded sessions wrote again after it had left the view.
"""

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
    "bias": -2.23,
    "times": 1.17,
    "is_once": -0.55,
    "results": -1.06,
    "slow_age": 1.22,
    "age": -1.72,
    "fast_age": 2.01,
    "is_own": 0.53,
    "own_age": -1.28,
    "was_asked": 0.89,
    "is_inserted": -1.61,
    "is_number": -0.67,
    "length": -0.27,
    "visible_company": 0.97,
    "history": -0.75,
}
PAIR_WEIGHTS: Mapping[str, float] = {
    "bias": -3.44,
    "times": 1.25,
    "slow_age": 0.67,
    "fast_age": -0.63,
    "has_visible_first": 0.44,
    "has_visible_second": 0.38,
    "has_visible_both": -0.05,
    "history": -0.54,
}
"""The learned weight of each feature, in the order in which the features are computed."""

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
        self.kept_facts = frozenset[str]().union(*(one.facts for one in kept))
        spoken = [line for one in kept for line in one.sentences]
        self.kept_words = frozenset(word for line in spoken for word in line.words)
        self.kept_pairs = frozenset[WordPair]().union(*(line.pairs for line in spoken))
        self._count_facts(earlier)
        self._count_pairs(earlier)
        self._count_company()
        ages, age = [0] * len(removed), 0
        for index in range(len(ages) - 1, -1, -1):
            ages[index] = age
            age += removed[index].item.tokens
        self.size = max(age, 1)
        self.fast, self.age, self.slow = (
            [exp(-one / tokens) for one in ages] for tokens in (1_500, 4_000, 15_000)
        )
        self.share = [exp(-3 * one / self.size) for one in ages]

    def _count_facts(self, earlier: Sequence[Statement]) -> None:
        self.times, self.own, self.results = Counter[str](), Counter[str](), Counter[str]()
        self.last, self.last_own = dict[str, int](), dict[str, int]()
        """The index of the newest block with each fact, and of the agent's newest."""
        self.written, self.inserted = set[str](), set[str]()
        for line in earlier:
            self.times.update(dict.fromkeys(line.facts, _EARLIER_TIMES))
            self.own.update(line.facts)
            self.written.update(line.facts)
        self.last |= dict.fromkeys(self.times, 0)
        for index, (item, content) in enumerate(self.removed):
            facts = content.facts
            self.times.update(facts)
            self.written |= content.written
            self.last |= dict.fromkeys(facts, index)
            if item.kind in ASSISTANT_KINDS:
                self.own.update(facts)
                self.last_own |= dict.fromkeys(facts, index)
            elif item.kind is BlockKind.TOOL_RESULT:
                self.results.update(facts)
            elif item.kind is not BlockKind.USER:
                self.inserted |= facts
        users = [one.content for one in self.removed if one.item.kind is BlockKind.USER][-2:]
        self.asked = frozenset[str]().union(*(one.facts for one in users))

    def _count_company(self) -> None:
        """Find, for each fact, the greatest share of visible facts in a block with it."""
        shares = [
            (len(content.written & self.kept_facts) / len(content.written), content.facts)
            for _, content in self.removed
            if not content.written.isdisjoint(self.kept_facts)
        ]
        self.visible_company = dict[str, float]()
        for share, facts in sorted(shares, key=lambda one: one[0]):
            self.visible_company |= dict.fromkeys(facts, share)

    def _count_pairs(self, earlier: Sequence[Statement]) -> None:
        self.pair_times, self.last_pair = Counter[WordPair](), dict[WordPair, int]()
        for line in earlier:
            self.pair_times.update(line.pairs)
        self.last_pair |= dict.fromkeys(self.pair_times, 0)
        for index, (_, content) in enumerate(self.removed):
            for one in content.sentences:
                if one.pairs:
                    self.pair_times.update(one.pairs)
                    self.last_pair |= dict.fromkeys(one.pairs, index)

    def iter_facts(self) -> Iterable[tuple[str, Features]]:
        """Yield the features of each fact that is written out somewhere and that nothing shows."""
        history = log(1 + self.size / 10_000)
        skipped = GENERIC_KEYS | self.kept_facts
        for fact, times in self.times.items():
            if fact in skipped or fact not in self.written:
                continue
            last, own = self.last[fact], self.last_own.get(fact)
            yield (
                fact,
                (
                    1.0,
                    log(times),
                    float(times == 1 and own is None),
                    log(1 + self.results.get(fact, 0)),
                    self.slow[last],
                    self.age[last],
                    self.fast[last],
                    float(own is not None),
                    0.0 if own is None else self.age[own],
                    float(fact in self.asked),
                    float(fact in self.inserted),
                    float(fact[0].isdigit() or fact[0] == "#"),
                    log(len(fact)),
                    self.visible_company.get(fact, 0.0),
                    history,
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
                    self.share[last],
                    self.age[last],
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

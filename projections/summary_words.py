"""Tells which boundary's summary first said the words of a later one."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

PHRASE = 4
"""Words in a row that two summaries hardly share by chance."""
_WORD = re.compile(r"\w+")

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Phrases of one summary, each with the boundary whose summary said it first."""

    origins: Mapping[Phrase, int]

    @classmethod
    def of(cls, boundary: int, text: str, before: "Words | None" = None) -> "Words":
        """The phrases of a summary that was written with the one before it at hand."""
        known = before.origins if before else {}
        return cls({phrase: known.get(phrase, boundary) for phrase in phrases_of(text)})

    def by_boundary(self) -> dict[int, int]:
        """How many phrases come from which boundary's summary, the oldest first."""
        return dict(sorted(Counter(self.origins.values()).items()))


def phrases_of(text: str) -> frozenset[Phrase]:
    """All runs of so many words, whatever their case; of a shorter text all of it."""
    words = [word.casefold() for word in _WORD.findall(text)]
    if not words:
        return frozenset()
    last = max(1, len(words) - PHRASE + 1)
    return frozenset(tuple(words[at : at + PHRASE]) for at in range(last))

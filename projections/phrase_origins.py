"""Tells which boundary's summary first said the words of a later one."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_PHRASE_WORDS = 4
"""Words in a row that two summaries hardly share by chance."""
_WORD = re.compile(r"\w+")

_Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseOrigins:
    """Phrases of one summary, each with the boundary whose summary said it first."""

    origins: Mapping[_Phrase, int]

    @classmethod
    def from_summary(
        cls, boundary: int, text: str, before: "PhraseOrigins | None" = None
    ) -> "PhraseOrigins":
        """The phrases of a summary that was written with the one before it at hand."""
        known = before.origins if before else {}
        return cls({phrase: known.get(phrase, boundary) for phrase in find_phrases(text)})

    def count_by_boundary(self) -> dict[int, int]:
        """How many phrases come from which boundary's summary, the oldest first."""
        return dict(sorted(Counter(self.origins.values()).items()))


def find_phrases(text: str) -> frozenset[_Phrase]:
    """All runs of so many words, whatever their case; of a shorter text all of it."""
    words = [word.casefold() for word in _WORD.findall(text)]
    if not words:
        return frozenset()
    last = max(1, len(words) - _PHRASE_WORDS + 1)
    return frozenset(tuple(words[at : at + _PHRASE_WORDS]) for at in range(last))

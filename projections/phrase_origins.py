"""Finds which boundary's summary first contained the words of a later one."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_PHRASE_WORDS = 4
"""A run of words that two summaries hardly share by chance."""
_WORD = re.compile(r"\w+")

_Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseOrigins:
    """The phrases of one summary, each with the boundary whose summary contained it first."""

    origins: Mapping[_Phrase, int]

    @classmethod
    def from_summary(
        cls, boundary: int, text: str, before: "PhraseOrigins | None" = None
    ) -> "PhraseOrigins":
        """Return the phrases of a summary that was written from the one before it."""
        known = before.origins if before else {}
        return cls({phrase: known.get(phrase, boundary) for phrase in find_phrases(text)})

    def count_by_boundary(self) -> dict[int, int]:
        """Return the number of phrases by the boundary they come from, oldest first."""
        return dict(sorted(Counter(self.origins.values()).items()))


def find_phrases(text: str) -> frozenset[_Phrase]:
    """Return all runs of words in lower case; of a shorter text, the whole."""
    words = [word.casefold() for word in _WORD.findall(text)]
    if not words:
        return frozenset()
    last = max(1, len(words) - _PHRASE_WORDS + 1)
    return frozenset(tuple(words[at : at + _PHRASE_WORDS]) for at in range(last))

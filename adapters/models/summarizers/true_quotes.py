"""Sets right what a model took for a user's exact words, where the letters are theirs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ....domain.summaries.extraction.wording import folded
from ....domain.summaries.quotes import comparables, quote_in, stands_in

SHORTEST = 8
"""Letters below which a likeness is chance."""
LONGEST = 50_000
"""Characters of a user's text that are searched: longer ones are pasted, not said."""
_OMISSION = re.compile(r"\s*(?:…|\.\.\.)\s*")


@dataclass(frozen=True)
class _Said:
    """A user's text, and its letters alone with the places where they stand."""

    text: str
    letters: str
    places: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "_Said":
        line = folded(text[:LONGEST])
        found = [
            (letter, at) for at, c in enumerate(line) for letter in c.casefold() if c.isalnum()
        ]
        return cls(line, "".join(letter for letter, _ in found), tuple(at for _, at in found))

    def span(self, words: str, since: int) -> tuple[int, int] | None:
        """Where the letters of some words stand, as positions among the letters."""
        letters = "".join(c for c in words.casefold() if c.isalnum())
        at = self.letters.find(letters, since) if len(letters) >= SHORTEST else -1
        return (at, at + len(letters)) if at >= 0 else None

    def between(self, first: int, last: int) -> str:
        return self.text[self.places[first] : self.places[last - 1] + 1]


def with_true_quotes(text: str, user_texts: Iterable[str]) -> str:
    """The text with the user's own spelling of quotes that have the user's letters, in order.

    Case, spaces and punctuation may differ; any other quote is left for the gate to judge.
    """
    texts = tuple(user_texts)
    comparable = tuple(chain.from_iterable(map(comparables, texts)))
    said: list[_Said] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = quote_in(line)
        if words is None or stands_in(words, comparable):
            continue
        said = said or [_Said.of(one) for one in texts]
        if (true := _true(words, said)) is not None:
            lines[number] = line.replace(words, true, 1)
    return "\n".join(lines)


def _true(words: str, said: Sequence[_Said]) -> str | None:
    """The words as one of the users' texts has them, omissions left as they are."""
    parts = [part for part in _OMISSION.split(words) if part.strip()]
    for one in said:
        found: list[str] = []
        since = 0
        for part in parts:
            span = one.span(part, since)
            if span is None:
                break
            found.append(one.between(*span))
            since = span[1]
        else:
            # A quotation mark of the user's own would end the quote.
            return " … ".join(found) if found and not any('"' in part for part in found) else None
    return None

"""Corrects quotes of users that have the right letters but not the exact text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from ....domain.summaries.extraction.clean_text import fold_lines
from ....domain.summaries.quotes import find_quote, is_quote_in, list_comparable_texts

_MIN_QUOTE_LETTERS = 8
"""The fewest letters for a match that is not chance."""
_MAX_TEXT_CHARACTERS = 50_000
"""The most characters of a user's text that are searched; longer ones are pasted."""
_OMISSION = re.compile(r"\s*(?:…|\.\.\.)\s*")


@dataclass(frozen=True)
class _UserText:
    """A user's text, and its letters alone with their positions."""

    text: str
    letters: str
    places: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> "_UserText":
        line = fold_lines(text[:_MAX_TEXT_CHARACTERS])
        found = [
            (letter, at) for at, c in enumerate(line) for letter in c.casefold() if c.isalnum()
        ]
        return cls(line, "".join(letter for letter, _ in found), tuple(at for _, at in found))

    def find_span(self, words: str, since: int) -> tuple[int, int] | None:
        """Return the range of the words' letters, as positions among the letters."""
        letters = "".join(c for c in words.casefold() if c.isalnum())
        at = self.letters.find(letters, since) if len(letters) >= _MIN_QUOTE_LETTERS else -1
        return (at, at + len(letters)) if at >= 0 else None

    def slice_letters(self, first: int, last: int) -> str:
        return self.text[self.places[first] : self.places[last - 1] + 1]


def correct_quotes(text: str, user_texts: Iterable[str]) -> str:
    """Return the text with quotes replaced by the user's own spelling, if their letters match.

    Case, spaces and punctuation may differ; other quotes are left to the gate.
    """
    texts = tuple(user_texts)
    comparable = tuple(chain.from_iterable(map(list_comparable_texts, texts)))
    said: list[_UserText] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = find_quote(line)
        if words is None or is_quote_in(words, comparable):
            continue
        said = said or [_UserText.from_text(one) for one in texts]
        if (true := _find_original(words, said)) is not None:
            lines[number] = line.replace(words, true, 1)
    return "\n".join(lines)


def _find_original(words: str, said: Sequence[_UserText]) -> str | None:
    parts = [part for part in _OMISSION.split(words) if part.strip()]
    for one in said:
        found: list[str] = []
        since = 0
        for part in parts:
            span = one.find_span(part, since)
            if span is None:
                break
            found.append(one.slice_letters(*span))
            since = span[1]
        else:
            # A quotation mark within the user's text would end the quote.
            return " … ".join(found) if found and not any('"' in part for part in found) else None
    return None

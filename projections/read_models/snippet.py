"""The piece of a text around what was searched for, and where in it that stands."""

import re
import unicodedata
from dataclasses import dataclass

from .search_query import Query, Term

WIDTH = 160
"""Characters of a snippet."""
AHEAD = 50
"""Characters of it before the first match."""
_WORDS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One line of a text; `marks` are where matches begin and end in it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def marked(self, before: str = "«", after: str = "»") -> str:
        """The text with signs around what was found."""
        pieces, at = [], 0
        for start, end in self.marks:
            pieces += [self.text[at:start], before, self.text[start:end], after]
            at = end
        return "".join((*pieces, self.text[at:]))


def snippet(text: str, query: Query) -> Snippet:
    """Around the first match of the term that has one; without any, the beginning."""
    pattern = re.compile("|".join(map(_pattern, query.wanted)), re.IGNORECASE)
    found = pattern.search(text)
    if found is None:
        # The index takes an accent off its letter.
        plain = "".join(map(_base, text))
        pattern = re.compile(
            "|".join(_pattern(term, plainly=True) for term in query.wanted), re.IGNORECASE
        )
        found = pattern.search(plain)
        if found is None:
            return _line(text[: 4 * WIDTH])
        return _around(text, plain, found.start(), pattern)
    return _around(text, text, found.start(), pattern)


def _around(text: str, plain: str, at: int, pattern: re.Pattern[str]) -> Snippet:
    start = max(0, at - AHEAD)
    end = start + 2 * WIDTH
    line, origins = _joined(text[start:end], plain[start:end])
    cut = len(line) > WIDTH or end < len(text)
    line, plainly = line[:WIDTH], origins[:WIDTH]
    head, tail = "…" if start else "", "…" if cut else ""
    marks = tuple(
        (found.start() + len(head), found.end() + len(head)) for found in pattern.finditer(plainly)
    )
    return Snippet(head + line + tail, marks)


def _joined(text: str, plain: str) -> tuple[str, str]:
    """Both without runs of blanks, still of one length."""
    kept = [
        at
        for at, character in enumerate(text)
        if not character.isspace() or (at and not text[at - 1].isspace())
    ]
    line = "".join(" " if text[at].isspace() else text[at] for at in kept)
    return line, "".join(" " if text[at].isspace() else plain[at] for at in kept)


def _line(text: str) -> Snippet:
    line = " ".join(text.split())
    return Snippet(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")


def _pattern(term: Term, *, plainly: bool = False) -> str:
    """A term's words side by side, whatever separates them, and not inside of longer words."""
    words = _WORDS.findall("".join(map(_base, term.text)) if plainly else term.text)
    side_by_side = r"[\W_]+".join(map(re.escape, words))
    return rf"(?<![^\W_]){side_by_side}" + ("" if term.is_beginning else r"(?![^\W_])")


def _base(character: str) -> str:
    """A letter without its accent; always one character."""
    return unicodedata.normalize("NFD", character)[0] if character > "\x7f" else character

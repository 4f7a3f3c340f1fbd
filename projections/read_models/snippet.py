"""Cuts the piece of a text around a search match, and marks the matches in it."""

import re
import unicodedata
from dataclasses import dataclass

from .search_query import SearchQuery, SearchTerm

SNIPPET_CHARS = 160
_CHARS_AHEAD = 50
"""The characters before the first match."""
_WORDS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One line of a text; `marks` are the spans of matches in it."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def mark_matches(self, before: str = "«", after: str = "»") -> str:
        pieces, at = [], 0
        for start, end in self.marks:
            pieces += [self.text[at:start], before, self.text[start:end], after]
            at = end
        return "".join((*pieces, self.text[at:]))


def make_snippet(text: str, query: SearchQuery) -> Snippet:
    """Return the text around the first match; without a match, its beginning."""
    pattern = re.compile("|".join(map(_make_pattern, query.required_terms)), re.IGNORECASE)
    found = pattern.search(text)
    if found is None:
        # The index ignores accents.
        plain = "".join(map(_strip_accent, text))
        pattern = re.compile(
            "|".join(_make_pattern(term, plainly=True) for term in query.required_terms),
            re.IGNORECASE,
        )
        found = pattern.search(plain)
        if found is None:
            return _make_first_line(text[: 4 * SNIPPET_CHARS])
        return _cut_around(text, plain, found.start(), pattern)
    return _cut_around(text, text, found.start(), pattern)


def _cut_around(text: str, plain: str, at: int, pattern: re.Pattern[str]) -> Snippet:
    start = max(0, at - _CHARS_AHEAD)
    end = start + 2 * SNIPPET_CHARS
    line, origins = _collapse_blanks(text[start:end], plain[start:end])
    cut = len(line) > SNIPPET_CHARS or end < len(text)
    line, plainly = line[:SNIPPET_CHARS], origins[:SNIPPET_CHARS]
    head, tail = "…" if start else "", "…" if cut else ""
    marks = tuple(
        (found.start() + len(head), found.end() + len(head)) for found in pattern.finditer(plainly)
    )
    return Snippet(head + line + tail, marks)


def _collapse_blanks(text: str, plain: str) -> tuple[str, str]:
    """Return both texts with runs of blanks collapsed, still of equal length."""
    kept = [
        at
        for at, character in enumerate(text)
        if not character.isspace() or (at and not text[at - 1].isspace())
    ]
    line = "".join(" " if text[at].isspace() else text[at] for at in kept)
    return line, "".join(" " if text[at].isspace() else plain[at] for at in kept)


def _make_first_line(text: str) -> Snippet:
    line = " ".join(text.split())
    return Snippet(line if len(line) <= SNIPPET_CHARS else line[: SNIPPET_CHARS - 1] + "…")


def _make_pattern(term: SearchTerm, *, plainly: bool = False) -> str:
    """Return a pattern of a term's adjacent words, whole and with any separators."""
    words = _WORDS.findall("".join(map(_strip_accent, term.text)) if plainly else term.text)
    side_by_side = r"[\W_]+".join(map(re.escape, words))
    return rf"(?<![^\W_]){side_by_side}" + ("" if term.is_prefix else r"(?![^\W_])")


def _strip_accent(character: str) -> str:
    """Return a letter without its accent, always one character."""
    return unicodedata.normalize("NFD", character)[0] if character > "\x7f" else character

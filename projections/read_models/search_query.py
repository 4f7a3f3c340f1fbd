"""Parses search queries, and marks their matches in a piece of a text.

A query has words, "phrases", -without, and beginnings of words*.
"""

import re
import unicodedata
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from ..rendering.sendable import replace_half_characters

_MIN_PREFIX_CHARS = 3
"""Fewer letters before a `*` match so many words that the search is slow."""
_PIECE = re.compile(r'(?P<no>-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')

SNIPPET_CHARS = 160
_CHARS_AHEAD = 50
"""The characters before the first match."""
_WORDS = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """Words that must be adjacent."""

    text: str
    is_prefix: bool = False
    """Whether the last word is only a beginning."""

    @property
    def expression(self) -> str:
        """The FTS5 expression, quoted so that no character has a special meaning."""
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"' + (" *" if self.is_prefix else "")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """All of the required terms, and none of the excluded ones."""

    required_terms: tuple[SearchTerm, ...]
    excluded_terms: tuple[SearchTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "SearchQuery":
        """Parse a query; raise InvalidSettingError, in one line, if it makes no sense."""
        text = replace_half_characters(text).replace("\0", " ")
        if text.count('"') % 2:
            raise InvalidSettingError(f"a quote is never closed in {text!r}: close it, or leave it")
        wanted: list[SearchTerm] = []
        unwanted: list[SearchTerm] = []
        for piece in _PIECE.finditer(text):
            term = _parse_term(piece)
            # Text without letters or digits is in no index: `->` neither matches nor excludes
            # anything.
            if any(character.isalnum() for character in term.text):
                (unwanted if piece["no"] else wanted).append(term)
        if unwanted and not wanted:
            raise InvalidSettingError(f"{text!r} only says what to leave out: say what to find")
        if not wanted:
            raise InvalidSettingError(f"nothing to search for in {text!r}: give a word")
        return cls(tuple(wanted), tuple(unwanted))

    @property
    def expression(self) -> str:
        wanted = " AND ".join(term.expression for term in self.required_terms)
        if not self.excluded_terms:
            return f"({wanted})"
        return f"(({wanted}) NOT ({' OR '.join(term.expression for term in self.excluded_terms)}))"


def _parse_term(piece: re.Match[str]) -> SearchTerm:
    if piece["phrase"] is not None:
        return SearchTerm(piece["phrase"])
    word = piece["word"]
    if not word.endswith("*"):
        return SearchTerm(word)
    beginning = word.rstrip("*")
    if not beginning:
        return SearchTerm("")
    if sum(map(str.isalnum, beginning)) < _MIN_PREFIX_CHARS:
        raise InvalidSettingError(
            f"{word!r} begins too many words: give {_MIN_PREFIX_CHARS} letters before the *"
        )
    return SearchTerm(beginning, is_prefix=True)


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
    plain = _strip_accents(text)  # as the index ignores them
    pattern = re.compile("|".join(map(_make_pattern, query.required_terms)), re.IGNORECASE)
    found = pattern.search(plain)
    if found is None:
        line = " ".join(text[: 4 * SNIPPET_CHARS].split())
        return Snippet(line if len(line) <= SNIPPET_CHARS else line[: SNIPPET_CHARS - 1] + "…")
    start = max(0, found.start() - _CHARS_AHEAD)
    end = start + 2 * SNIPPET_CHARS
    line = " ".join(text[start:end].split())
    head = "…" if start else ""
    tail = "…" if len(line) > SNIPPET_CHARS or end < len(text) else ""
    marks = tuple(
        (match.start() + len(head), match.end() + len(head))
        for match in pattern.finditer(_strip_accents(line[:SNIPPET_CHARS]))
    )
    return Snippet(head + line[:SNIPPET_CHARS] + tail, marks)


def _make_pattern(term: SearchTerm) -> str:
    """Return a pattern of a term's adjacent words, whole and with any separators."""
    side_by_side = r"[\W_]+".join(map(re.escape, _WORDS.findall(_strip_accents(term.text))))
    return rf"(?<![^\W_]){side_by_side}" + ("" if term.is_prefix else r"(?![^\W_])")


def _strip_accents(text: str) -> str:
    """Return the text without accents, character by character."""
    if text.isascii():
        return text
    return "".join(
        unicodedata.normalize("NFD", character)[0] if character > "\x7f" else character
        for character in text
    )

"""Parses search queries: words, "phrases", -without, and beginnings of words*."""

import re
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from .searchable_text import replace_surrogates

_MIN_PREFIX_CHARS = 3
"""Fewer letters before a `*` match so many words that the search is slow."""
_PIECE = re.compile(r'(?P<no>-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')


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
        text = replace_surrogates(text).replace("\0", " ")
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

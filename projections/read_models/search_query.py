"""Reads a search as people type it: words, "phrases", -without, and beginnings of words*."""

import re
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from .searchable_text import replace_surrogates

_MIN_PREFIX_CHARS = 3
"""Letters before a `*`: fewer begin so many words that finding them takes long."""
_PIECE = re.compile(r'(?P<no>-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """Words that must stand side by side."""

    text: str
    is_prefix: bool = False
    """Whether the last word may go on."""

    @property
    def expression(self) -> str:
        """As FTS5 has it; inside of quotes nothing has a meaning of its own."""
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"' + (" *" if self.is_prefix else "")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """All of `wanted`, and none of `unwanted`."""

    required_terms: tuple[SearchTerm, ...]
    excluded_terms: tuple[SearchTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "SearchQuery":
        """Raises InvalidSettingError, in one line, where it cannot be understood."""
        text = replace_surrogates(text).replace("\0", " ")
        if text.count('"') % 2:
            raise InvalidSettingError(f"a quote is never closed in {text!r}: close it, or leave it")
        wanted: list[SearchTerm] = []
        unwanted: list[SearchTerm] = []
        for piece in _PIECE.finditer(text):
            term = _parse_term(piece)
            # What has no letter or digit is in no index: `->` finds nothing and forbids nothing.
            if any(character.isalnum() for character in term.text):
                (unwanted if piece["no"] else wanted).append(term)
        if unwanted and not wanted:
            raise InvalidSettingError(f"{text!r} only says what to leave out: say what to find")
        if not wanted:
            raise InvalidSettingError(f"nothing to search for in {text!r}: give a word")
        return cls(tuple(wanted), tuple(unwanted))

    @property
    def expression(self) -> str:
        """The whole of it as FTS5 has it."""
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

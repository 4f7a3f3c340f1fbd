"""Reads a search as people type it: words, "phrases", -without, and beginnings of words*."""

import re
from dataclasses import dataclass

from ...domain.errors import InvalidSettingError
from .said import whole

SHORTEST_BEGINNING = 3
"""Letters before a `*`: fewer begin so many words that finding them takes long."""
_PIECE = re.compile(r'(?P<no>-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must stand side by side."""

    text: str
    is_beginning: bool = False
    """Whether the last word may go on."""

    @property
    def expression(self) -> str:
        """As FTS5 has it; inside of quotes nothing has a meaning of its own."""
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"' + (" *" if self.is_beginning else "")


@dataclass(frozen=True, slots=True)
class Query:
    """All of `wanted`, and none of `unwanted`."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()

    @classmethod
    def parsed(cls, text: str) -> "Query":
        """Raises InvalidSettingError, in one line, where it cannot be understood."""
        text = whole(text).replace("\0", " ")
        if text.count('"') % 2:
            raise InvalidSettingError(f"a quote is never closed in {text!r}: close it, or leave it")
        wanted: list[Term] = []
        unwanted: list[Term] = []
        for piece in _PIECE.finditer(text):
            term = _term(piece)
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
        wanted = " AND ".join(term.expression for term in self.wanted)
        if not self.unwanted:
            return f"({wanted})"
        return f"(({wanted}) NOT ({' OR '.join(term.expression for term in self.unwanted)}))"


def _term(piece: re.Match[str]) -> Term:
    if piece["phrase"] is not None:
        return Term(piece["phrase"])
    word = piece["word"]
    if not word.endswith("*"):
        return Term(word)
    beginning = word.rstrip("*")
    if not beginning:
        return Term("")
    if sum(map(str.isalnum, beginning)) < SHORTEST_BEGINNING:
        raise InvalidSettingError(
            f"{word!r} begins too many words: give {SHORTEST_BEGINNING} letters before the *"
        )
    return Term(beginning, is_beginning=True)

"""Reads events as searchable texts, parses queries, and marks their matches.

A query has words, "phrases", -without, and beginnings of words*.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from ..domain.blocks import AnyBlock, Block, Media, Text, ToolCall
from ..domain.compaction_events import Summary
from ..domain.errors import InvalidSettingError
from ..domain.event import Event
from ..domain.session_events import BlockAppended, ToolCallAbandoned, ToolCalled, ToolReturned
from .rendering.sendable import replace_half_characters

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


SUMMARY_KIND = "summary"
"""The kind of a summary, next to the kinds of blocks."""
SEARCHABLE_EVENTS = (BlockAppended, ToolCalled, ToolReturned, ToolCallAbandoned, Summary)
_EXCERPT_CHARS = 120
"""The length of an excerpt in a list."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS = dict.fromkeys("bfnrt", " ")


class SearchableText(NamedTuple):
    kind: str
    turn: int | None
    name: str | None
    text: str


def read_searchable_text(event: Event) -> SearchableText | None:
    """Return an event's text; None for an event without any."""
    match event:
        case BlockAppended() | ToolCalled() | ToolReturned():
            block, name = event.block, getattr(event.block, "name", None)
            said = SearchableText(block.kind.value, event.turn, name, _read_block_text(block))
        case ToolCallAbandoned(reason=reason, turn=turn):
            said = SearchableText("tool_result", turn, None, reason)
        case Summary(text=text):
            said = SearchableText(SUMMARY_KIND, None, None, text)
        case _:
            return None
    name = said.name and replace_half_characters(said.name)
    return said._replace(text=replace_half_characters(said.text), name=name)


def make_excerpt(text: str, most: int = _EXCERPT_CHARS) -> str:
    return " ".join(text[: 2 * most].split())[:most]


def _read_block_text(block: AnyBlock) -> str:
    match block:
        case Block():
            media = [block.media] if block.media else []
            return "\n".join(filter(None, (block.text, block.name, *map(_name_media, media))))
        case ToolCall():
            return f"{block.name} {_unescape(block.arguments)}"
        case _ if isinstance(block.content, str):
            return block.content
        case _:
            return "\n".join(
                part.text if isinstance(part, Text) else _name_media(part)
                for part in block.content
                if isinstance(part, Text | Media)
            )


def _unescape(arguments: str) -> str:
    r"""Return JSON text without its escapes, since `\nnote` would hide the word `note`."""
    return _ESCAPE.sub(_decode_escape, arguments) if "\\" in arguments else arguments


def _decode_escape(escape: re.Match[str]) -> str:
    code, letter = escape.groups()
    return chr(int(code, 16)) if code else _BLANKS.get(letter, letter)


def _name_media(media: Media) -> str:
    return " ".join(filter(None, (media.name, media.url)))

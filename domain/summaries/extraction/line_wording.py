"""Formats and compares the words of a line, caching each result."""

from functools import cached_property, lru_cache

from ..quotes import find_quote, write_quote
from ..tool_markup import defuse_tool_markup
from .clean_text import LINE_CACHE_SIZE, shorten_inside, shorten_line
from .facts import FactKind, find_fact_kind

_SORTS = frozenset(FactKind)


class LineWording:
    """Everything that depends on the words of a line alone."""

    def __init__(self, text: str, *, is_quote: bool) -> None:
        self.text = text
        self.is_quote = is_quote

    def write_within(self, room: int) -> str:
        return self.full_text if len(self.full_text) <= room else _write_within(self, room)

    @cached_property
    def facts(self) -> tuple[str, ...]:
        """The facts that a line of facts lists; empty for any other line."""
        sort, listed, facts = self.text.partition(": ")
        if not listed or sort not in _SORTS:
            return ()
        found = tuple(facts.split(", "))
        return found if all(map(find_fact_kind, found)) else ()

    @cached_property
    def long_words(self) -> frozenset[str]:
        """The words by which two lines are compared."""
        return frozenset(word for word in self.text.casefold().split() if len(word) > 3)

    @cached_property
    def escaped_text(self) -> str:
        """The text, escaped so that it reads neither as the user's nor as a tool call."""
        text = defuse_tool_markup(self.text)
        return text if find_quote(text) is None else f"Log: {text}"

    @cached_property
    def full_text(self) -> str:
        if self.is_quote:
            return write_quote(self.text)
        return _close_code(self.escaped_text)


@lru_cache(maxsize=LINE_CACHE_SIZE)
def get_wording(text: str, *, is_quote: bool) -> LineWording:
    return LineWording(text, is_quote=is_quote)


@lru_cache(maxsize=LINE_CACHE_SIZE)
def _write_within(wording: LineWording, room: int) -> str:
    if wording.is_quote:
        return write_quote(shorten_inside(wording.text, room - len(write_quote(""))))
    said = shorten_line(wording.escaped_text, room)
    return said if _close_code(said) is said else shorten_line(wording.escaped_text, room - 1) + "`"


def _close_code(text: str) -> str:
    return f"{text}`" if text.count("`") % 2 else text

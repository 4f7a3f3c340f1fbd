"""How the words of a line are written and compared; worked out once, however often they come."""

from functools import cached_property, lru_cache

from ..quotes import quote_in, quoted
from ..tool_markup import harmless
from .facts import Sort, sort_of
from .wording import REMEMBERED, shortened, shortened_inside

_SORTS = frozenset(Sort)


class Wording:
    """What can be said of a line by its words alone, wherever they come from."""

    def __init__(self, text: str, *, is_quote: bool) -> None:
        self.text = text
        self.is_quote = is_quote

    def within(self, room: int) -> str:
        """The words as they are written, in at most so many characters."""
        return self.whole if len(self.whole) <= room else _within(self, room)

    @cached_property
    def facts(self) -> tuple[str, ...]:
        """Of a row of the ledger the facts that it lists; of any other line none."""
        sort, listed, facts = self.text.partition(": ")
        if not listed or sort not in _SORTS:
            return ()
        found = tuple(facts.split(", "))
        return found if all(map(sort_of, found)) else ()

    @cached_property
    def long_words(self) -> frozenset[str]:
        """The words by which two lines say the same."""
        return frozenset(word for word in self.text.casefold().split() if len(word) > 3)

    @cached_property
    def told(self) -> str:
        """Words of the log that can be taken neither for the user's nor for a tool call."""
        text = harmless(self.text)
        return text if quote_in(text) is None else f"Log: {text}"

    @cached_property
    def whole(self) -> str:
        """The words as they are written where there is room for all of them."""
        if self.is_quote:
            return quoted(self.text)
        return _closed(self.told)


@lru_cache(maxsize=REMEMBERED)
def wording_of(text: str, *, is_quote: bool) -> Wording:
    """What is known of these words."""
    return Wording(text, is_quote=is_quote)


@lru_cache(maxsize=REMEMBERED)
def _within(wording: Wording, room: int) -> str:
    if wording.is_quote:
        return quoted(shortened_inside(wording.text, room - len(quoted(""))))
    said = shortened(wording.told, room)
    return said if _closed(said) is said else shortened(wording.told, room - 1) + "`"


def _closed(text: str) -> str:
    """A text whose last piece of code ends."""
    return f"{text}`" if text.count("`") % 2 else text

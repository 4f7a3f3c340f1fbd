"""Tool results that stay in the view shortened: what that saves, and which may be."""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from .blocks import Kind
from .compaction_events import Trim
from .cut_points.carried import leaves_unsaid
from .ranges import Ranges
from .token_budget import CHARS_PER_TOKEN
from .window import Item, Window

MARK = 60
"""Characters, about, of the mark that says what was left out and how to recall it."""
SHARE = 10
"""A result that takes more than this part of the model's context may be shortened to it."""
LEAST = 500
"""Tokens below which nothing is shortened in an emergency."""


def tokens_saved(items: Iterable[Item], trims: Iterable[Trim], earlier: Iterable[Trim]) -> int:
    """What `trims` take off the items, as these are shown under the `earlier` trims."""
    shown = {trim.position: trim for trim in earlier}
    wanted = {trim.position: trim for trim in trims}
    if not wanted:
        return 0
    return sum(
        _saved(item, wanted[item.position], shown.get(item.position))
        for item in items
        if item.position in wanted and wanted[item.position] != shown.get(item.position)
    )


class Shortened(NamedTuple):
    """A tool result of which less shows than did."""

    item: Item
    head: int
    """Characters of its beginning that stay."""
    now: int
    """Characters that show of it."""
    then: int
    """Characters that will."""

    @property
    def saved(self) -> int:
        return saved(self.item.tokens, self.now, self.then)


def shortened(window: Window, heads: Iterable[tuple[Item, int]]) -> Iterator[Shortened]:
    """Those results of which only the beginning is to stay, so many characters, that show more.

    The same as `effective` says of such trims and `tokens_saved` of these, with none being made.
    """
    earlier = {trim.position: trim for trim in window.boundary.trims} if window.boundary else {}
    hidden = _hidden(window)
    for item, head in heads:
        if item.is_pinned or (hidden and item.position in hidden):
            continue
        then = min(len(item.block.text), head + MARK)
        now = _shown(item, earlier.get(item.position))
        if then < now:
            yield Shortened(item, head, now, then)


def effective(window: Window, stays: Iterable[Item], trims: Sequence[Trim]) -> tuple[Trim, ...]:
    """Those of the trims that shorten something: a tool result that stays and is longer."""
    if not trims:
        return ()
    shown = {trim.position: trim for trim in window.boundary.trims} if window.boundary else {}
    results = {item.position: item for item in _results(window, stays)}
    return tuple(
        trim
        for trim in trims
        if min(trim.head, trim.tail) >= 0
        and (item := results.get(trim.position))
        and _shown(item, trim) < _shown(item, shown.get(item.position))
    )


def largest_shortened(window: Window, stays: Sequence[Item]) -> tuple[Trim, ...]:
    """Trims of the results that no view can hold beside much else; none where none is so large.

    Both ends of a result are shown, twice as much of its beginning as of its end. Pinned ones, and
    what people and models said, are left as they are.
    """
    most = shortened_to(window.limit)
    before = {trim.position for trim in window.boundary.trims} if window.boundary else set()
    return tuple(
        both_ends(item.position, most)
        for item in _results(window, stays)
        if item.position not in before and is_large(item.tokens, _shown(item, None), most)
    )


def shortened_to(limit: int) -> int:
    """Tokens that the largest results are shortened to where a model holds `limit`; 0 is not
    known."""
    return max(limit // SHARE, LEAST) if limit > 0 else LEAST


def is_large(tokens: int, characters: int, most: int) -> bool:
    """Whether a result is so large that it may be shortened, by its text that shows."""
    return tokens > most and characters > most * CHARS_PER_TOKEN


def both_ends(position: int, most: int) -> Trim:
    """Of a result, as much as takes so many tokens."""
    room = most * CHARS_PER_TOKEN - MARK
    return Trim(position=position, head=room * 2 // 3, tail=room // 3)


def saved(tokens: int, characters: int, shown: int) -> int:
    """What it takes off so many tokens to show fewer characters, as a plan reckons it."""
    return tokens - ceil(tokens * shown / characters) if shown < characters else 0


def _results(window: Window, stays: Iterable[Item]) -> Iterator[Item]:
    """Tool results whose own text shows, and that nobody wants kept word for word."""
    hidden = _hidden(window)
    for item in stays:
        if item.kind is Kind.TOOL_RESULT and not item.is_pinned and item.position not in hidden:
            yield item


def _hidden(window: Window) -> Ranges:
    hidden = leaves_unsaid(window)
    # A pin brings back the other half of its pair, which shows no more than a text.
    return hidden | window.boundary.hidden if window.boundary else hidden


def _saved(item: Item, trim: Trim, earlier: Trim | None) -> int:
    return saved(item.tokens, _shown(item, earlier), _shown(item, trim))


def _shown(item: Item, trim: Trim | None) -> int:
    """Characters that are shown."""
    whole = len(item.block.text)
    if trim is None and item.length is not None:
        return item.length
    return whole if trim is None else reckoned(whole, trim)


def reckoned(whole: int, trim: Trim) -> int:
    """Characters that a trim shows of so many, its mark being taken for one like any other."""
    return min(whole, trim.head + trim.tail + MARK)

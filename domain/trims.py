"""Tool results that stay in the view shortened: what then shows of them, and which may be."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from .blocks import Kind
from .compaction_events import Trim
from .cut_points.carried_blocks import find_hidden_positions
from .item import Item
from .ranges import Ranges
from .token_estimate import CHARS_PER_TOKEN
from .window import Window

_MARK_CHARS = 60
"""Characters, at most, of the mark that says what was left out and how to recall it."""
_SHARE_DIVISOR = 10
"""A result that takes more than this part of the model's context may be shortened to it."""
_MIN_SHORTENED_TOKENS = 500
"""Tokens below which nothing is shortened in an emergency."""

MIN_BLOCK_TOKENS = 60
"""Tokens that are left of a block at the least, where nothing else makes a view fit."""
TRIMMABLE_KINDS = frozenset(
    {Kind.TOOL_RESULT, Kind.TOOL_CALL, Kind.USER, Kind.ASSISTANT, Kind.DEVELOPER}
)
"""Kinds of blocks of which both ends can stand for the whole: no image, no signed thinking."""


def trim_text(text: str, trim: Trim) -> str:
    """The first and last characters of a text around a mark that says how to recall the rest."""
    left_out = len(text) - trim.head - trim.tail
    if left_out <= 0:
        return text
    end = text[-trim.tail :] if trim.tail else ""
    return text[: trim.head] + _write_mark(left_out, trim.position) + end


def count_trimmed_chars(whole: int, trim: Trim) -> int:
    """Characters that `trimmed` leaves of so many."""
    return _count_chars_left(whole, trim.position, trim.head, trim.tail)


def _count_chars_left(whole: int, position: int, head: int, tail: int = 0) -> int:
    left_out = whole - head - tail
    return whole if left_out <= 0 else head + len(_write_mark(left_out, position)) + tail


def _write_mark(left_out: int, position: int) -> str:
    return f"\n[... {left_out:,} characters left out; recall #{position} ...]\n"


class ShortenedResult(NamedTuple):
    """A tool result of which less shows than did."""

    item: Item
    head: int
    """Characters of its beginning that stay."""
    saved: int
    """Tokens that this takes off the view."""


def iter_shortened_results(
    window: Window, heads: Iterable[tuple[Item, int]]
) -> Iterator[ShortenedResult]:
    """Those results of which only the beginning is to stay, so many characters, that show more.

    The same as `effective` says of such trims, with none being made.
    """
    earlier = {trim.position: trim for trim in window.boundary.trims} if window.boundary else {}
    hidden = _find_hidden(window)
    for item, head in heads:
        if item.is_pinned or (hidden and item.position in hidden):
            continue
        then = _count_chars_left(len(item.block.text), item.position, head)
        if then < _count_shown_chars(item, earlier.get(item.position)):
            yield ShortenedResult(item, head, item.tokens - window.count_item_tokens(item, then))


def list_effective_trims(
    window: Window, stays: Iterable[Item], trims: Sequence[Trim]
) -> tuple[Trim, ...]:
    """Those of the trims that shorten something: a tool result that stays and is longer."""
    if not trims:
        return ()
    earlier = {trim.position: trim for trim in window.boundary.trims} if window.boundary else {}
    results = {item.position: item for item in _iter_trimmable_results(window, stays)}
    return tuple(
        trim
        for trim in trims
        if min(trim.head, trim.tail) >= 0
        and (item := results.get(trim.position))
        and count_trimmed_chars(len(item.block.text), trim)
        < _count_shown_chars(item, earlier.get(item.position))
    )


def trim_largest_results(window: Window, stays: Sequence[Item]) -> tuple[Trim, ...]:
    """Trims of the results that no view can hold beside much else; none where none is so large.

    Both ends of a result are shown, twice as much of its beginning as of its end. Pinned ones, and
    what people and models said, are left as they are.
    """
    most = compute_trim_target(window.limit)
    before = {trim.position for trim in window.boundary.trims} if window.boundary else set()
    return tuple(
        trim_to_ends(item.position, most)
        for item in _iter_trimmable_results(window, stays)
        if item.position not in before
        and is_large(item.tokens, _count_shown_chars(item, None), most)
    )


def trim_blocks(
    window: Window, stays: Iterable[Item], kinds: Collection[Kind], most: int
) -> tuple[Trim, ...]:
    """Trims of all blocks of these kinds that take more tokens, but for pins and open calls."""
    hidden = _find_hidden(window)
    return tuple(
        trim_to_ends(item.position, most)
        for item in stays
        if item.kind in kinds
        and not (item.is_pinned or item.is_open or item.position in hidden)
        and is_large(item.tokens, _count_shown_chars(item, None), most)
    )


def compute_trim_target(limit: int) -> int:
    """Tokens that the largest results are shortened to where a model holds `limit`; 0 is not
    known."""
    return (
        max(limit // _SHARE_DIVISOR, _MIN_SHORTENED_TOKENS) if limit > 0 else _MIN_SHORTENED_TOKENS
    )


def is_large(tokens: int, characters: int, most: int) -> bool:
    """Whether a result is so large that it may be shortened, by its text that shows."""
    return tokens > most and characters > most * CHARS_PER_TOKEN


def trim_to_ends(position: int, most: int) -> Trim:
    """Of a result, as much as takes so many tokens."""
    room = most * CHARS_PER_TOKEN - _MARK_CHARS
    return Trim(position=position, head=room * 2 // 3, tail=room // 3)


def _iter_trimmable_results(window: Window, stays: Iterable[Item]) -> Iterator[Item]:
    """Tool results whose own text shows, and that nobody wants kept word for word."""
    hidden = _find_hidden(window)
    for item in stays:
        if item.kind is Kind.TOOL_RESULT and not item.is_pinned and item.position not in hidden:
            yield item


def _find_hidden(window: Window) -> Ranges:
    hidden = find_hidden_positions(window)
    # A pin brings back the other half of its pair, which shows no more than a text.
    return hidden | window.boundary.hidden if window.boundary else hidden


def _count_shown_chars(item: Item, trim: Trim | None) -> int:
    """Characters that are shown."""
    if trim is not None:
        return count_trimmed_chars(len(item.block.text), trim)
    return len(item.block.text) if item.length is None else item.length

"""Shortens blocks that stay in the view and large tool results, and computes what shows of them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from .blocks import BlockKind
from .compaction_events import Replacement, Trim
from .cut_points import PAIR_KINDS, find_hidden_positions
from .item import WindowItem
from .ranges import Ranges
from .session_events import Ends
from .token_estimate import CHARS_PER_TOKEN, count_bytes, count_fitting_chars
from .window import Window

_MARK_CHARS = 60
"""The longest mark that says what was left out and how to recall it, in characters."""
_SHARE_DIVISOR = 10
"""A result that takes more than the context divided by this may be shortened to it."""
_MIN_SHORTENED_TOKENS = 500
"""Tokens below which nothing is shortened in an emergency."""

MIN_BLOCK_TOKENS = 60
"""The least tokens that are left of a block if nothing else makes a view fit."""
_RESULTS = frozenset({BlockKind.TOOL_RESULT})
TRIMMABLE_KINDS = frozenset(
    {
        BlockKind.TOOL_RESULT,
        BlockKind.TOOL_CALL,
        BlockKind.USER,
        BlockKind.ASSISTANT,
        BlockKind.DEVELOPER,
    }
)
"""Kinds of blocks whose two ends can represent the whole: no images, no signed thinking."""


def trim_text(text: str, trim: Trim) -> str:
    """Return both ends of a text around a mark that says how to recall the rest."""
    left_out = len(text) - trim.head - trim.tail
    if left_out <= 0:
        return text
    end = text[-trim.tail :] if trim.tail else ""
    return text[: trim.head] + _write_mark(left_out, trim.position) + end


def count_trimmed_chars(whole: int, trim: Trim) -> int:
    left_out = whole - trim.head - trim.tail
    if left_out <= 0:
        return whole
    return trim.head + len(_write_mark(left_out, trim.position)) + trim.tail


def _write_mark(left_out: int, position: int) -> str:
    return f"\n[... {left_out:,} characters left out; recall #{position} ...]\n"


def list_effective_trims(
    window: Window, stays: Iterable[WindowItem], trims: Sequence[Trim]
) -> tuple[Trim, ...]:
    """Return the trims that shorten something: a tool result that stays and is longer."""
    return tuple([trim for trim, _ in iter_effective_trims(window, stays, trims)]) if trims else ()


def iter_effective_trims(
    window: Window, stays: Iterable[WindowItem], trims: Iterable[Trim]
) -> Iterator[tuple[Trim, WindowItem]]:
    """Yield each trim that shortens something, and the tool result that it shortens."""
    results = {item.position: item for item in _iter_trimmable(window, stays, _RESULTS)}
    for trim in trims:
        item = results.get(trim.position)
        if item is None or min(trim.head, trim.tail) < 0:
            continue
        shown = _count_shown_chars(item, window.earlier_trims.get(item.position))
        if count_trimmed_chars(len(item.block.text), trim) < shown:
            yield trim, item


def clear_results(
    window: Window, results: Sequence[WindowItem]
) -> tuple[list[tuple[Trim, WindowItem]], int]:
    """Return trims that leave one line of each result, with the results, and the tokens saved."""
    trims = [Trim(position=item.position, head=0) for item in results]
    found = list(iter_effective_trims(window, results, trims))
    return found, sum(count_saved_tokens(window, item, trim) for trim, item in found)


def count_saved_tokens(window: Window, item: WindowItem, trim: Trim) -> int:
    """Return the tokens by which the view becomes smaller if the item is trimmed."""
    length = count_trimmed_chars(len(item.block.text), trim)
    return item.tokens - window.count_item_tokens(item, length)


def trim_largest_results(window: Window, stays: Iterable[WindowItem]) -> tuple[Trim, ...]:
    """Return trims of the results that are too large for any view; empty if there are none.

    Both ends of a result stay, two thirds of them from the beginning. Pinned results and messages
    are not shortened, nor is a result twice.
    """
    stays = [item for item in stays if item.position not in window.earlier_trims]
    return trim_blocks(window, stays, _RESULTS, compute_trim_target(window.limit))


def trim_blocks(
    window: Window, stays: Iterable[WindowItem], kinds: Collection[BlockKind], most: int
) -> tuple[Trim, ...]:
    """Return trims of all larger blocks of these kinds, except pins and open calls."""
    return tuple(
        trim_to_ends(item.position, most * CHARS_PER_TOKEN)
        for item in _iter_trimmable(window, stays, kinds)
        if is_large(item.tokens, _count_shown_chars(item, None), most)
    )


def compute_trim_target(limit: int) -> int:
    """Return the tokens to which the largest results are shortened; a `limit` of 0 is unknown."""
    return max(limit // _SHARE_DIVISOR, _MIN_SHORTENED_TOKENS)


def is_large(tokens: int, characters: int, most: int) -> bool:
    """Check whether a result's shown text is so large that it may be shortened."""
    return tokens > most and characters > most * CHARS_PER_TOKEN


def trim_to_ends(position: int, most: int) -> Trim:
    """Return a trim that leaves `most` characters of a result, the mark among them."""
    room = max(most - _MARK_CHARS, 0)
    return Trim(position=position, head=room * 2 // 3, tail=room // 3)


def _iter_trimmable(
    window: Window, stays: Iterable[WindowItem], kinds: Collection[BlockKind]
) -> Iterator[WindowItem]:
    hidden = _find_hidden(window)
    for item in stays:
        if item.kind in kinds and not (item.is_pinned or item.is_open or item.position in hidden):
            yield item


def _find_hidden(window: Window) -> Ranges:
    # A pin brings back the other half of its pair, which shows only a replacement text.
    return find_hidden_positions(window) | window.earlier_hidden


def _count_shown_chars(item: WindowItem, trim: Trim | None) -> int:
    if trim is not None:
        return count_trimmed_chars(len(item.block.text), trim)
    return len(item.block.text) if item.length is None else item.length


@dataclass(frozen=True, slots=True)
class ShownBlocks:
    """The blocks that stay, as the view will show them."""

    trims: tuple[Trim, ...]
    """All trims in effect, including those of earlier boundaries."""
    replacements: tuple[Replacement, ...]
    tokens: int


def compute_shown_blocks(
    window: Window, stays: Sequence[WindowItem], new: Sequence[Trim]
) -> ShownBlocks:
    """Return what shows of the blocks that stay with `new` trims; a pinned result stays whole."""
    texts = _find_replacement_texts(window, stays)
    trims = _merge_trims(window, stays, new, texts)
    replacements = tuple(Replacement(position=at, text=text) for at, text in texts.items())
    return ShownBlocks(trims, replacements, _count_tokens(window, stays, trims, texts))


def _find_replacement_texts(window: Window, stays: Sequence[WindowItem]) -> dict[int, str]:
    """Return the texts, by position, in place of hidden blocks; half of a tool pair has one."""
    was_hidden, texts = window.earlier_hidden, dict(window.earlier_replacements)
    if not (texts or was_hidden or window.hides):
        return {}
    kinds = {item.position: item.kind for item in stays}
    # A pin can bring back a pair with one half hidden long ago.
    hides = dict.fromkeys(p for p in kinds if p in was_hidden) | window.hides
    for position, text in hides.items():
        if text is not None or kinds.get(position) in PAIR_KINDS:
            texts[position] = text or f"[hidden; recall #{position}]"
    shown = {item.position for item in stays if not item.is_pinned}
    return {position: text for position, text in sorted(texts.items()) if position in shown}


def _merge_trims(
    window: Window, stays: Sequence[WindowItem], new: Sequence[Trim], texts: dict[int, str]
) -> tuple[Trim, ...]:
    if not (window.earlier_trims or new):
        return ()
    trims = window.earlier_trims | {trim.position: trim for trim in new}
    standing = {item.position for item in stays} - set(texts)
    return tuple(trim for position, trim in sorted(trims.items()) if position in standing)


def _count_tokens(
    window: Window, stays: Sequence[WindowItem], trims: Sequence[Trim], texts: dict[int, str]
) -> int:
    hidden = _find_hidden(window)
    was_replaced = window.earlier_replacements
    if not (texts or trims or hidden or was_replaced):
        return sum([item.tokens for item in stays])
    trim_of = {trim.position: trim for trim in trims}
    tokens = 0
    for item in stays:
        position = item.position
        if position in texts:
            tokens += window.count_item_tokens(item, len(texts[position]))
        elif position in hidden and not item.is_pinned:
            pass
        elif position in trim_of:
            length = count_trimmed_chars(len(item.block.text), trim_of[position])
            tokens += window.count_item_tokens(item, length)
        else:
            tokens += (
                window.count_item_tokens(item, None) if position in was_replaced else item.tokens
            )
    return tokens


class OutputKind(StrEnum):
    """The kind of a tool's output, guessed from its text."""

    CODE = "Code"
    LOG = "Log"
    TEXT = "Text"


_HEAD_SHARES = {OutputKind.CODE: 0.7, OutputKind.LOG: 0.4, OutputKind.TEXT: 0.5}
"""The beginning's share of the shown text: most of it for code, less for a log."""
MIN_SHOWN_TOKENS = 100
"""The least tokens that are shown of any answer when large ones are shortened."""
_SMALL_BYTES = 100
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_CODE_CHARACTERS = "{}[]();:"
_CODE_SHARE = 0.02
"""The share of code's own characters that marks a text as code."""


def detect_output_kind(text: str) -> OutputKind:
    """Return LOG for a text with dates and levels, CODE for one with brackets, otherwise TEXT."""
    if "20" in text and ":" in text and any(level in text for level in _LEVELS):
        return OutputKind.LOG
    if text and sum(map(text.count, _CODE_CHARACTERS)) > _CODE_SHARE * len(text):
        return OutputKind.CODE
    return OutputKind.TEXT


def find_ends(text: str, most_tokens: int) -> Ends | None:
    """Return the ends to show of a text with more than `most_tokens`; None if it has no more.

    Tokens are counted as four bytes each, and characters are never split.
    """
    size, tokens = count_bytes(text), count_byte_tokens(text)
    if tokens <= most_tokens or size < _SMALL_BYTES:
        return None
    room = size * most_tokens // tokens
    head = int(room * _HEAD_SHARES[detect_output_kind(text)])
    tail = count_fitting_chars(text[::-1], room - head)
    return Ends(head=count_fitting_chars(text, head), tail=tail)


def count_byte_tokens(text: str) -> int:
    return -(-count_bytes(text) // CHARS_PER_TOKEN)

"""Computes what the new view shows of each block that stays, and its size in tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .compaction_events import Replacement, Trim
from .cut_points.carried_blocks import find_hidden_positions
from .cut_points.visible_cuts import PAIR_KINDS
from .item import Item
from .ranges import Ranges
from .trims import count_trimmed_chars
from .window import Window


@dataclass(frozen=True, slots=True)
class ShownBlocks:
    """The blocks that stay, as the view will show them."""

    trims: tuple[Trim, ...]
    """All trims in effect, including those of earlier boundaries."""
    replacements: tuple[Replacement, ...]
    tokens: int


def compute_shown_blocks(window: Window, stays: Sequence[Item], new: Sequence[Trim]) -> ShownBlocks:
    """Return what shows of the blocks that stay with `new` trims; a pinned result stays whole."""
    pinned = Ranges.of([item.position for item in stays if item.is_pinned])
    replacements = tuple(_iter_replacements(window, stays, pinned))
    texts = {one.position: one.text for one in replacements}
    trims = _merge_trims(window, stays, new, texts)
    return ShownBlocks(trims, replacements, _count_tokens(window, stays, trims, texts))


def _iter_replacements(
    window: Window, stays: Sequence[Item], pinned: Ranges
) -> Iterator[Replacement]:
    """Yield the hidden blocks that leave a text in their place; half of a tool pair always does."""
    texts = {r.position: r.text for r in window.boundary.replacements} if window.boundary else {}
    was_hidden = window.boundary.hidden if window.boundary else Ranges()
    if not (texts or was_hidden or window.hides):
        return
    kinds = {item.position: item.kind for item in stays}
    # A pin can bring back a pair with one half hidden long ago.
    hides = dict.fromkeys(p for p in kinds if p in was_hidden) | window.hides
    for position, text in hides.items():
        if text is not None or kinds.get(position) in PAIR_KINDS:
            texts[position] = text or f"[hidden; recall #{position}]"
    for position, text in sorted(texts.items()):
        if position in kinds and position not in pinned:
            yield Replacement(position=position, text=text)


def _merge_trims(
    window: Window, stays: Sequence[Item], new: Sequence[Trim], texts: dict[int, str]
) -> tuple[Trim, ...]:
    earlier = window.boundary.trims if window.boundary else ()
    if not (earlier or new):
        return ()
    trims = {trim.position: trim for trim in (*earlier, *new)}
    standing = {item.position for item in stays} - set(texts)
    return tuple(trim for position, trim in sorted(trims.items()) if position in standing)


def _count_tokens(
    window: Window, stays: Sequence[Item], trims: Sequence[Trim], texts: dict[int, str]
) -> int:
    boundary = window.boundary
    hidden = find_hidden_positions(window) | (boundary.hidden if boundary else Ranges())
    trim_of = {trim.position: trim for trim in trims}
    was_replaced = {r.position for r in boundary.replacements} if boundary else set[int]()
    if not (texts or trims or hidden or was_replaced):
        return sum([item.tokens for item in stays])
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

"""What the view to come shows of each block that stays, and what that takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .compaction_events import Replacement, Trim
from .cut_points.carried import leaves_unsaid
from .cut_points.shown import PAIRED
from .item import Item
from .ranges import Ranges
from .trims import trimmed_length
from .window import Window


@dataclass(frozen=True, slots=True)
class Showing:
    """The blocks that stay, as they will be shown."""

    trims: tuple[Trim, ...]
    """All trims in force, those of earlier boundaries included."""
    replacements: tuple[Replacement, ...]
    tokens: int


def showing(window: Window, stays: Sequence[Item], new: Sequence[Trim]) -> Showing:
    """How blocks show that stay, `new` trims being made. A pin keeps what shows of a result."""
    pinned = Ranges.of([item.position for item in stays if item.is_pinned])
    replacements = tuple(_replacements(window, stays, pinned))
    texts = {one.position: one.text for one in replacements}
    trims = _trims(window, stays, new, texts)
    return Showing(trims, replacements, _tokens(window, stays, trims, texts))


def _replacements(window: Window, stays: Sequence[Item], pinned: Ranges) -> Iterator[Replacement]:
    """Hidden blocks that leave a text in their place; half of a tool pair always does."""
    texts = {r.position: r.text for r in window.boundary.replacements} if window.boundary else {}
    was_hidden = window.boundary.hidden if window.boundary else Ranges()
    if not (texts or was_hidden or window.hides):
        return
    kinds = {item.position: item.kind for item in stays}
    # Of a pair that a pin brings back, one half may have been hidden long ago.
    hides = dict.fromkeys(p for p in kinds if p in was_hidden) | window.hides
    for position, text in hides.items():
        if text is not None or kinds.get(position) in PAIRED:
            texts[position] = text or f"[hidden; recall #{position}]"
    for position, text in sorted(texts.items()):
        if position in kinds and position not in pinned:
            yield Replacement(position=position, text=text)


def _trims(
    window: Window, stays: Sequence[Item], new: Sequence[Trim], texts: dict[int, str]
) -> tuple[Trim, ...]:
    earlier = window.boundary.trims if window.boundary else ()
    if not (earlier or new):
        return ()
    trims = {trim.position: trim for trim in (*earlier, *new)}
    standing = {item.position for item in stays} - set(texts)
    return tuple(trim for position, trim in sorted(trims.items()) if position in standing)


def _tokens(
    window: Window, stays: Sequence[Item], trims: Sequence[Trim], texts: dict[int, str]
) -> int:
    boundary = window.boundary
    hidden = leaves_unsaid(window) | (boundary.hidden if boundary else Ranges())
    trim_of = {trim.position: trim for trim in trims}
    was_replaced = {r.position for r in boundary.replacements} if boundary else set[int]()
    if not (texts or trims or hidden or was_replaced):
        return sum([item.tokens for item in stays])
    tokens = 0
    for item in stays:
        position = item.position
        if position in texts:
            tokens += window.tokens_of(item, len(texts[position]))
        elif position in hidden and not item.is_pinned:
            pass
        elif position in trim_of:
            length = trimmed_length(len(item.block.text), trim_of[position])
            tokens += window.tokens_of(item, length)
        else:
            tokens += window.tokens_of(item, None) if position in was_replaced else item.tokens
    return tokens

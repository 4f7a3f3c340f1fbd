"""Gives every block up to a boundary exactly one status, and makes a policy's plan legal."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from .compaction_events import HiddenBlock, Repair, Replacement, SplitTurn, Trim
from .cut_points import find_hidden_positions
from .item import Item
from .plan_repairs import repair_plan
from .ranges import Ranges
from .trims import compute_shown_blocks
from .window import Plan, Window


class BlockStatus(StrEnum):
    """What became of a block; the first that holds decides."""

    ERASED = "erased"
    RETRACTED = "retracted"
    PINNED = "pinned"
    HIDDEN = "hidden"
    TRIMMED = "trimmed"
    SUMMARIZED = "summarised"
    VISIBLE = "visible"


@dataclass(frozen=True, slots=True)
class Settlement:
    """A plan made legal: the content of a boundary except its summary."""

    after: int
    first_kept: int
    kept: Ranges
    pinned: Ranges
    hidden: Ranges
    covers: Ranges
    """All positions that the new summary has to cover, including those of earlier summaries."""
    trims: tuple[Trim, ...]
    replacements: tuple[Replacement, ...]
    split_turn: SplitTurn | None
    repairs: tuple[Repair, ...]
    removed_items: tuple[Item, ...]
    """The blocks that leave the view now and that no earlier summary covers."""
    kept_tokens: int
    """Tokens of the blocks that stay, as the view shows them."""


def settle_plan(window: Window, plan: Plan, *, to_fit: bool = False) -> Settlement:
    """Return the nearest legal settlement of a plan.

    `to_fit` shortens blocks until the rest fits into the model's context. Raises
    NothingToCompactError, naming the largest blocks, if nothing can be removed.
    """
    legal = repair_plan(window, plan, to_fit=to_fit)
    cut, stays = legal.cut, legal.staying_items
    pinned = Ranges.of([item.position for item in stays if item.is_pinned])
    earlier = window.boundary
    covered = window.summary.covers if window.summary else Ranges()
    universe = Ranges.span(earlier.after + 1 if earlier else 1, window.after) - window.retracted
    universe |= (earlier.kept - window.retracted) if earlier else Ranges()
    shows = compute_shown_blocks(window, stays, legal.trims)
    shown = Ranges.of(replacement.position for replacement in shows.replacements)
    hides = find_hidden_positions(window) & universe
    hidden = (window.earlier_hidden | hides) - shown - pinned
    # A pin can bring back a block that left long ago, together with its group.
    standing = {item.position for item in stays}
    leaves = [item for item in window.items if item.position not in standing]
    left = Ranges.of([item.position for item in leaves])
    # Without a cut nothing leaves except dropped blocks, not even blocks that no model is sent.
    begins = cut if legal.is_cut else 1
    kept = ((universe & Ranges.span(begins, window.after)) - left | Ranges.of(standing)) - hidden
    covers = (covered | universe) - kept - hidden
    return Settlement(
        after=window.after,
        first_kept=cut,
        kept=kept,
        pinned=pinned,
        hidden=hidden,
        covers=covers,
        trims=shows.trims,
        replacements=shows.replacements,
        split_turn=find_split_turn(window.items, cut, covers) if legal.is_cut else None,
        repairs=legal.repairs,
        removed_items=tuple([item for item in leaves if item.position not in hidden]),
        kept_tokens=shows.tokens,
    )


def list_newly_hidden(window: Window, settlement: Settlement) -> tuple[HiddenBlock, ...]:
    """Return what this boundary hides for the first time, with the text in its place."""
    shown = {replacement.position: replacement.text for replacement in settlement.replacements}
    return tuple(
        HiddenBlock(position=position, replacement=shown.get(position, text))
        for position, text in sorted(window.hides.items())
        if position not in settlement.pinned
    )


def find_split_turn(items: Sequence[Item], cut: int, covers: Ranges) -> SplitTurn | None:
    """Return the part of the cut's turn that leaves, if the cut is inside a turn."""
    turn = next(item.turn for item in items if item.position == cut)
    left = [item for item in items if item.turn == turn and item.position in covers]
    if not left or turn == 0:
        return None
    prefix = Ranges.span(left[0].place, left[-1].place) | Ranges.of(i.position for i in left)
    # A late result of an earlier turn may be stored among this turn's blocks.
    others = Ranges.of(item.position for item in items if item.turn != turn)
    return SplitTurn(turn=turn, prefix=(prefix & covers) - others)

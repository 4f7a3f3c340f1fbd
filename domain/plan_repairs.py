"""Turns a policy's plan into the nearest legal one, and records each change."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import BlockKind
from .compaction_events import Repair, Trim
from .cut_points import (
    find_carried_positions,
    find_hidden_positions,
    find_legal_cuts,
    find_nearest_cut,
    find_unsent_positions,
    is_carried,
)
from .errors import NothingToCompactError
from .item import WindowItem, get_place, group_blocks
from .ranges import Ranges
from .trims import (
    MIN_BLOCK_TOKENS,
    TRIMMABLE_KINDS,
    compute_shown_blocks,
    compute_trim_target,
    list_effective_trims,
    trim_blocks,
    trim_largest_results,
)
from .window import Plan, Window

SUMMARY_DIVISOR = 20
"""The share of the context reserved for a summary, as a divisor, if the plan allows as much."""


@dataclass(frozen=True, slots=True)
class RepairedPlan:
    """The part of the window that stays, so that the served view is a valid conversation."""

    cut: int
    """The first block of the kept window; blocks that stay before it are carried along."""
    is_cut: bool
    """Whether the blocks before `cut` leave; otherwise the window keeps beginning there."""
    staying_items: tuple[WindowItem, ...]
    trims: tuple[Trim, ...]
    repairs: tuple[Repair, ...]


def repair_plan(window: Window, plan: Plan, *, to_fit: bool = False) -> RepairedPlan:
    """Return the legal plan nearest to a policy's plan.

    A cut moves to the nearest position where it separates no pair and no message and removes
    something. Of the blocks dropped after it, pairs and messages leave or stay as a whole. If the
    view is still too large for the model, or nothing may leave, the largest tool results are
    shortened; `to_fit` shortens other large blocks too, until the view fits. Raises
    NothingToCompactError if none of this helps.
    """
    cut, repairs = _find_cut(window, plan)
    begins = cut if cut is not None else _find_first_kept(window)
    stays = _list_staying(window, cut) if cut is not None else tuple(window.items)
    if plan.drops:
        stays, dropping = _drop_groups(stays, plan.drops, find_unsent_positions(window))
        repairs += dropping
    trims = list_effective_trims(window, stays, plan.trims)
    something_goes = _is_anything_removed(window, stays)
    beside = window.limit // SUMMARY_DIVISOR if to_fit else 0
    if _is_too_large(window, stays, trims, beside) or not (something_goes or trims):
        if to_fit:
            extra = _shorten_to_fit(window, stays, trims)
        else:
            extra = trim_largest_results(
                window, [i for i in stays if i.position not in _list_positions(trims)]
            )
        if extra:
            repairs += (
                Repair(rule="shortened-largest", trimmed=Ranges.of(_list_positions(extra))),
            )
            trims += extra
    if not (something_goes or trims):
        raise NothingToCompactError(f"{explain_no_gain(window)}{_explain_plan(plan)}")
    return RepairedPlan(begins, cut is not None, stays, trims, repairs)


def _shorten_to_fit(
    window: Window, stays: Sequence[WindowItem], trims: Sequence[Trim]
) -> tuple[Trim, ...]:
    """Return trims that make blocks and a small summary fit, or come as close as possible.

    Tool results come first, then calls and messages; each to a tenth of the context, then to less.
    """
    room = window.limit - window.request_tokens - window.limit // SUMMARY_DIVISOR
    extra: tuple[Trim, ...] = ()
    for kinds in (frozenset({BlockKind.TOOL_RESULT}), TRIMMABLE_KINDS):
        most = compute_trim_target(window.limit)
        while most >= MIN_BLOCK_TOKENS:
            extra = trim_blocks(window, stays, kinds, most)
            if compute_shown_blocks(window, stays, (*trims, *extra)).tokens <= room:
                return extra
            most //= 2
    return extra


def explain_no_gain(window: Window) -> str:
    """Return why a compaction removed nothing, naming the largest blocks."""
    largest = sorted(window.items, key=lambda item: -item.tokens)[:3]
    named = ", ".join(
        f"#{item.position} {item.kind} {item.tokens:,} tokens"
        + (" (pinned)" if item.is_pinned else " (open)" if item.is_open else "")
        for item in largest
    )
    return (
        f"nothing to compact: {window.tokens:,} tokens in view, and no legal cut makes it smaller"
        + (f"; the largest blocks are {named}" if named else "")
    )


def _find_cut(window: Window, plan: Plan) -> tuple[int | None, tuple[Repair, ...]]:
    if plan.cut is None:
        return None, ()
    wanted = next((item.place for item in window.items if item.position == plan.cut), plan.cut)
    cut = find_nearest_cut(find_legal_cuts(window), wanted)
    if cut is None or cut == plan.cut:
        return cut, ()
    return cut, (Repair(rule="nearest-legal-cut", wanted=plan.cut, got=cut),)


def _list_staying(window: Window, cut: int) -> tuple[WindowItem, ...]:
    """Return the items from the cut on, and those before it that are carried along."""
    carried = find_carried_positions(window, cut)
    at = bisect_left(window.items, cut, key=get_place)
    return (*(item for item in window.items[:at] if item.position in carried), *window.items[at:])


def _find_first_kept(window: Window) -> int:
    return next((item.position for item in window.open_to_cut), window.cut_start)


def _drop_groups(
    items: Sequence[WindowItem], drops: Ranges, unseen: Ranges
) -> tuple[tuple[WindowItem, ...], tuple[Repair, ...]]:
    """Return the items that stay once pairs and messages leave as a whole, and the repairs."""
    wanted = frozenset([item.position for item in items if item.position in drops])
    touched = [
        group for group in group_blocks(items) if any(item.position in wanted for item in group)
    ]
    leaving = [group for group in touched if _is_group_leaving(group, wanted)]
    if not leaving:
        # Each drop would separate a pair, so the first group that may leave does.
        leaving = [group for group in touched if not any(map(is_carried, group))][:1]
    repairs: tuple[Repair, ...] = ()
    gone = frozenset(item.position for group in leaving for item in group)
    shows = [group for group in leaving if any(item.position not in unseen for item in group)]
    if shows and all(item.position in gone or item.position in unseen for item in items):
        last = max(shows, key=lambda group: _find_newest(group).place)
        newest = frozenset(item.position for item in last)
        gone -= newest
        repairs = (Repair(rule="never-empty", stays=Ranges.of(newest)),)
    stays, leaves = Ranges.of(wanted - gone), Ranges.of(gone - wanted)
    for repair in repairs:
        stays -= repair.stays
    if stays or leaves:
        repairs = (Repair(rule="whole-groups", stays=stays, leaves=leaves), *repairs)
    return tuple([item for item in items if item.position not in gone]), repairs


def _is_group_leaving(group: Sequence[WindowItem], drops: frozenset[int]) -> bool:
    """Check whether a partly dropped group leaves: if most of its tokens would.

    It stays with its newest block, which a policy keeps because it is recent.
    """
    dropped = [item for item in group if item.position in drops]
    if not dropped or any(map(is_carried, group)):
        return False
    if len(dropped) == len(group):
        return True
    if _find_newest(group).position not in drops:
        return False
    return 2 * sum(item.tokens for item in dropped) > sum(item.tokens for item in group)


def _explain_plan(plan: Plan) -> str:
    takes_out = plan.cut is not None or plan.drops or plan.trims
    return "" if takes_out else f" ({plan.reason})"


def _is_anything_removed(window: Window, stays: Sequence[WindowItem]) -> bool:
    unsaid = find_hidden_positions(window)
    standing = {item.position for item in stays}
    return any(
        item.position not in standing and item.position not in unsaid for item in window.items
    )


def _find_newest(group: Sequence[WindowItem]) -> WindowItem:
    return max(group, key=lambda item: (item.place, item.position))


def _is_too_large(
    window: Window, stays: Sequence[WindowItem], trims: Sequence[Trim], beside: int = 0
) -> bool:
    """Check whether the kept blocks and `beside` more tokens exceed the model's context."""
    if window.limit <= 0:
        return False
    return (
        window.request_tokens + compute_shown_blocks(window, stays, trims).tokens + beside
        > window.limit
    )


def _list_positions(trims: Sequence[Trim]) -> frozenset[int]:
    return frozenset(trim.position for trim in trims)

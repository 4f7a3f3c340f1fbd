"""Turns a policy's raw plan into the nearest legal one, and says what had to be changed for it."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Kind
from .bonds import bound
from .compaction_events import Repair, Trim
from .cut_points import legal_cuts, nearest
from .cut_points.carried import carried_over, is_carried, leaves_unsaid
from .cut_points.shown import never_seen
from .errors import NothingToCompactError
from .item import Item, place_of
from .ranges import Ranges
from .showing import showing
from .trims import (
    FEWEST,
    SHORTENED,
    all_shortened,
    effective,
    largest_shortened,
    shortened_to,
)
from .window import Plan, Window

FOR_SUMMARY = 20
"""The part of the context that is left to a summary, if it may be as large."""


@dataclass(frozen=True, slots=True)
class Legal:
    """What of the window stays, so that what is served is a conversation."""

    cut: int
    """The first block of the kept window; what stays in front of it is carried along."""
    is_cut: bool
    """Whether what stands before `cut` leaves; else the window goes on beginning there."""
    stays: tuple[Item, ...]
    trims: tuple[Trim, ...]
    repairs: tuple[Repair, ...]


def made_legal(window: Window, plan: Plan, *, to_fit: bool = False) -> Legal:
    """The legal plan next to a raw one.

    A cut moves to the nearest position where it parts no pair and no message and takes something
    out. Of what is dropped behind it, pairs and messages leave or stay as a whole. Where the view
    is still too large for the model, or nothing may leave at all, the largest tool results are
    shortened; `to_fit` shortens what else is large, until the view fits. Raises
    NothingToCompactError where nothing of this helps.
    """
    cut, repairs = _cut(window, plan)
    begins = cut if cut is not None else _first(window)
    stays = _behind(window, cut) if cut is not None else tuple(window.items)
    if plan.drops:
        stays, dropping = _dropped(stays, plan.drops, never_seen(window))
        repairs += dropping
    trims = effective(window, stays, plan.trims)
    something_goes = _goes(window, stays)
    beside = window.limit // FOR_SUMMARY if to_fit else 0
    if _is_too_large(window, stays, trims, beside) or not (something_goes or trims):
        if to_fit:
            extra = _shortened_to_fit(window, stays, trims)
        else:
            extra = largest_shortened(window, [i for i in stays if i.position not in _at(trims)])
        if extra:
            repairs += (Repair(rule="shortened-largest", trimmed=Ranges.of(_at(extra))),)
            trims += extra
    if not (something_goes or trims):
        raise NothingToCompactError(f"{nothing_to_gain(window)}{_why(plan)}")
    return Legal(begins, cut is not None, stays, trims, repairs)


def _shortened_to_fit(
    window: Window, stays: Sequence[Item], trims: Sequence[Trim]
) -> tuple[Trim, ...]:
    """Trims by which blocks fit beside a small summary, or as few tokens stay as can be.

    Tool results first, then calls and what was said; to a tenth of the context, then to less.
    """
    room = window.limit - window.request - window.limit // FOR_SUMMARY
    extra: tuple[Trim, ...] = ()
    for kinds in (frozenset({Kind.TOOL_RESULT}), SHORTENED):
        most = shortened_to(window.limit)
        while most >= FEWEST:
            extra = all_shortened(window, stays, kinds, most)
            if showing(window, stays, (*trims, *extra)).tokens <= room:
                return extra
            most //= 2
    return extra


def nothing_to_gain(window: Window) -> str:
    """Why a compaction came to nothing: the floor, and what holds it up."""
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


def _cut(window: Window, plan: Plan) -> tuple[int | None, tuple[Repair, ...]]:
    if plan.cut is None:
        return None, ()
    wanted = next((item.place for item in window.items if item.position == plan.cut), plan.cut)
    cut = nearest(legal_cuts(window), wanted)
    if cut is None or cut == plan.cut:
        return cut, ()
    return cut, (Repair(rule="nearest-legal-cut", wanted=plan.cut, got=cut),)


def _behind(window: Window, cut: int) -> tuple[Item, ...]:
    """The items from the cut on, and those in front of it that are carried along."""
    carried = carried_over(window, cut)
    at = bisect_left(window.items, cut, key=place_of)
    return (*(item for item in window.items[:at] if item.position in carried), *window.items[at:])


def _first(window: Window) -> int:
    """Where the kept window goes on beginning if nothing is cut off."""
    return next((item.position for item in window.open_to_cut), window.begins)


def _dropped(
    items: Sequence[Item], drops: Ranges, unseen: Ranges
) -> tuple[tuple[Item, ...], tuple[Repair, ...]]:
    """What stays of the items once pairs and messages leave as a whole, and what that changed."""
    wanted = frozenset([item.position for item in items if item.position in drops])
    touched = [group for group in bound(items) if any(item.position in wanted for item in group)]
    leaving = [group for group in touched if _leaves(group, wanted)]
    if not leaving:
        # Each drop would part a pair: the first that may leave does, with all that it is bound to.
        leaving = [group for group in touched if not any(map(is_carried, group))][:1]
    repairs: tuple[Repair, ...] = ()
    gone = frozenset(item.position for group in leaving for item in group)
    shows = [group for group in leaving if any(item.position not in unseen for item in group)]
    if shows and all(item.position in gone or item.position in unseen for item in items):
        last = max(shows, key=lambda group: _newest(group).place)
        newest = frozenset(item.position for item in last)
        gone -= newest
        repairs = (Repair(rule="never-empty", stays=Ranges.of(newest)),)
    stays, leaves = Ranges.of(wanted - gone), Ranges.of(gone - wanted)
    for repair in repairs:
        stays -= repair.stays
    if stays or leaves:
        repairs = (Repair(rule="whole-groups", stays=stays, leaves=leaves), *repairs)
    return tuple([item for item in items if item.position not in gone]), repairs


def _leaves(group: Sequence[Item], drops: frozenset[int]) -> bool:
    """Whether a group leaves of which some was to leave: as most of it would, by tokens.

    It stays with its newest block, which a policy keeps for being recent.
    """
    dropped = [item for item in group if item.position in drops]
    if not dropped or any(map(is_carried, group)):
        return False
    if len(dropped) == len(group):
        return True
    if _newest(group).position not in drops:
        return False
    return 2 * sum(item.tokens for item in dropped) > sum(item.tokens for item in group)


def _why(plan: Plan) -> str:
    """What a policy says that would take nothing out itself."""
    takes_out = plan.cut is not None or plan.drops or plan.trims
    return "" if takes_out else f" ({plan.reason})"


def _goes(window: Window, stays: Sequence[Item]) -> bool:
    """Whether a block leaves that a summary can stand for."""
    unsaid = leaves_unsaid(window)
    standing = {item.position for item in stays}
    return any(
        item.position not in standing and item.position not in unsaid for item in window.items
    )


def _newest(group: Sequence[Item]) -> Item:
    return max(group, key=lambda item: (item.place, item.position))


def _is_too_large(
    window: Window, stays: Sequence[Item], trims: Sequence[Trim], beside: int = 0
) -> bool:
    """Whether what stays does not fit into the model's context, with so many tokens beside it."""
    if window.limit <= 0:
        return False
    return window.request + showing(window, stays, trims).tokens + beside > window.limit


def _at(trims: Sequence[Trim]) -> frozenset[int]:
    return frozenset(trim.position for trim in trims)

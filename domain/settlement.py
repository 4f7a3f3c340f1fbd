"""Makes a policy's plan legal, tightens it if its view would be too large, and prices it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from .compaction_events import HiddenBlock, Repair, Replacement, SplitTurn, Trim
from .cut_points import find_hidden_positions, find_legal_cuts, is_carried
from .errors import NothingToCompactError
from .item import WindowItem
from .models import ModelFacts
from .plan_repairs import SUMMARY_DIVISOR, repair_plan
from .pricing import Pricing
from .ranges import Ranges
from .summaries.summarizer import Draft
from .token_estimate import estimate_text
from .trims import compute_shown_blocks, trim_largest_results
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
    removed_items: tuple[WindowItem, ...]
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


def find_split_turn(items: Sequence[WindowItem], cut: int, covers: Ranges) -> SplitTurn | None:
    """Return the part of the cut's turn that leaves, if the cut is inside a turn."""
    turn = next(item.turn for item in items if item.position == cut)
    left = [item for item in items if item.turn == turn and item.position in covers]
    if not left or turn == 0:
        return None
    prefix = Ranges.span(left[0].place, left[-1].place) | Ranges.of(i.position for i in left)
    # A late result of an earlier turn may be stored among this turn's blocks.
    others = Ranges.of(item.position for item in items if item.turn != turn)
    return SplitTurn(turn=turn, prefix=(prefix & covers) - others)


def settle_plan_to_fit(window: Window, plan: Plan) -> Settlement:
    """Return the settlement of a plan, or of one that keeps less if its view would not fit.

    A view fits if it has room for a summary within `plan.most_tokens`, or else within the model's
    limit. Raises NothingToCompactError if nothing can be removed.
    """
    if window.limit <= 0:
        return settle_plan(window, plan)
    meant: Settlement | None = None
    try:
        meant = settle_plan(window, plan)
        if count_tokens_left(window, plan, meant) >= 0:
            return meant
    except NothingToCompactError:
        if window.tokens <= _max_view_tokens(window, plan):
            raise
    try:
        if window.request_tokens + window.held_tokens > window.limit:
            # The part that no cut removes is too large by itself, so keeping less of the rest would
            # not help.
            return settle_plan(window, plan) if meant is None else meant
        tighter = _tighten_plan(window, plan, meant)
    except NothingToCompactError:
        if meant is None:
            raise
        return meant
    return tighter if meant is None or tighter.kept_tokens < meant.kept_tokens else meant


def compute_summary_budget(window: Window, plan: Plan, settlement: Settlement) -> int:
    """Return how many tokens the summary of a settled plan may have."""
    if window.limit <= 0:
        return plan.summary_tokens
    granted = plan.summary_tokens + plan.turn_tokens
    if not granted:
        return 0
    room = _min_summary_tokens(window, plan) + max(0, count_tokens_left(window, plan, settlement))
    estimated = round(room * window.limit / max(window.convert_estimate(window.limit), 1))
    return min(plan.summary_tokens, max(estimated * plan.summary_tokens // granted, 1))


def count_tokens_left(window: Window, plan: Plan, settlement: Settlement) -> int:
    """Return the tokens left by kept blocks and a small summary; below 0 if these do not fit."""
    if settlement.removed_items:
        summary = _min_summary_tokens(window, plan)
    else:
        summary = window.convert_estimate(window.summary.tokens) if window.summary else 0
    return _max_view_tokens(window, plan) - window.request_tokens - summary - settlement.kept_tokens


def _tighten_plan(window: Window, plan: Plan, meant: Settlement | None) -> Settlement:
    """Return the settlement at the first later cut that fits, with shortened results."""
    room = (
        _max_view_tokens(window, plan) - window.request_tokens - _min_summary_tokens(window, plan)
    )
    largest = trim_largest_results(window, window.items)
    begins = meant.first_kept if meant is not None else 0
    cut = None
    for position, stays in _iter_later_cuts(window, begins):
        cut = position
        if compute_shown_blocks(window, stays, largest).tokens <= room:
            break
    if cut is None:
        return settle_plan(window, replace(plan, trims=(*plan.trims, *largest)), to_fit=True)
    found = settle_plan(window, replace(plan, cut=cut, trims=(*plan.trims, *largest)), to_fit=True)
    if cut == plan.cut:
        return found
    repair = Repair(rule="later-cut", wanted=plan.cut, got=cut)
    return replace(found, repairs=(repair, *found.repairs))


def _iter_later_cuts(window: Window, begins: int) -> Iterator[tuple[int, Sequence[WindowItem]]]:
    """Yield the legal cuts from a position on, with the items that stay apart from their groups."""
    legal, items = find_legal_cuts(window), window.items
    held = [item for group in window.groups if any(map(is_carried, group)) for item in group]
    for index, item in enumerate(items):
        if item.position in legal and item.place >= begins:
            before = [one for one in held if one.place < item.place]
            yield item.position, (*before, *items[index:])


def _max_view_tokens(window: Window, plan: Plan) -> int:
    return min(plan.most_tokens or window.limit, window.limit)


def _min_summary_tokens(window: Window, plan: Plan) -> int:
    return min(plan.summary_tokens + plan.turn_tokens, window.limit // SUMMARY_DIVISOR)


def price_compaction(
    window: Window,
    settlement: Settlement,
    plan: Plan,
    prices: ModelFacts | None,
    expected_calls: int,
    *,
    draft: Draft | None = None,
) -> Pricing:
    """Return what the settled plan costs and saves on the model `prices`.

    Before the summary is written, its size is the plan's limit, and it costs nothing. A `draft`
    gives the real size and cost.
    """
    summary_tokens = plan.summary_tokens if draft is None else estimate_text(draft.text)
    return replace(
        window.price(settlement.kept_tokens, window.convert_estimate(summary_tokens)),
        model=prices,
        expected_calls=expected_calls,
        summary_usd=0.0 if draft is None or draft.model is None else draft.cost_usd,
    )

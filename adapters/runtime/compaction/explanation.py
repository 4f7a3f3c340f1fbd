"""Explains a compaction before it runs: the trigger, the plan, and what leaves or stays."""

from collections.abc import Iterable
from dataclasses import dataclass

from ....domain.compaction_events import Trigger, Trim
from ....domain.item import Item
from ....domain.policies.policy import ThresholdState, measure_threshold
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.token_estimate import KindShare, compute_kind_shares
from ....domain.trims import count_trimmed_chars
from ....domain.window import Plan, Window
from ....projections.planned_compaction import PlannedCompaction
from .compaction_request import CompactionRequest


@dataclass(frozen=True, slots=True)
class ResultShortening:
    """A tool result that the view would show shortened from then on."""

    position: int
    tokens: int
    """Its tokens in the current view."""
    shown: int
    """Its tokens after shortening."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a plan is as it is, and what it adds up to."""

    trigger: Trigger
    due: ThresholdState
    plan: Plan | None
    """The policy's plan before it was made legal; None if it asks for nothing."""
    leaves: tuple[KindShare, ...]
    stays: tuple[KindShare, ...]
    shortened: tuple[ResultShortening, ...]
    writers: tuple[str, ...]
    """The summarizers to ask, in order; empty if only a notice replaces the blocks."""


def explain_plan(order: CompactionRequest, planned: PlannedCompaction | Window) -> Explanation:
    """Explain the policy's plan, or why it asks for none."""
    if isinstance(planned, Window):
        return Explanation(
            trigger=order.trigger,
            due=measure_threshold(order.policy, planned),
            plan=None,
            leaves=(),
            stays=_count_shares(planned.items),
            shortened=(),
            writers=(),
        )
    window, settlement = planned.window, planned.settlement
    stays = [item for item in window.items if item.position in settlement.kept]
    chain = tuple(one.name for one in order.chain.summarizers) or (ExtractiveSummarizer().name,)
    needs_summary = planned.material.removed_items and planned.plan.summary_tokens
    return Explanation(
        trigger=order.trigger,
        due=measure_threshold(order.policy, window),
        plan=planned.plan,
        leaves=_count_shares(
            [item for item in window.items if item.position not in settlement.kept]
        ),
        stays=_count_shares(stays),
        shortened=_find_shortened(window, stays, settlement.trims),
        writers=chain if needs_summary else (),
    )


def _count_shares(items: Iterable[Item]) -> tuple[KindShare, ...]:
    return compute_kind_shares((item.kind, item.tokens) for item in items)


def _find_shortened(
    window: Window, stays: list[Item], trims: tuple[Trim, ...]
) -> tuple[ResultShortening, ...]:
    by_position = {item.position: item for item in stays}
    found = []
    for trim in trims:
        item = by_position.get(trim.position)
        if item is None:
            continue
        then = window.count_item_tokens(item, count_trimmed_chars(len(item.block.text), trim))
        if then < item.tokens:
            found.append(ResultShortening(trim.position, item.tokens, then))
    return tuple(found)

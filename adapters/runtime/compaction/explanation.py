"""Explains a compaction before it is done: what fires, what was wanted, and what becomes of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ....domain.compaction_events import Trigger, Trim
from ....domain.item import Item
from ....domain.policies.threshold import Due, due
from ....domain.shares import Share, shares_of
from ....domain.summaries.extractive import Extractive
from ....domain.trims import trimmed_length
from ....domain.window import Plan, Window
from ....projections.planned import Planned
from .order import Order


@dataclass(frozen=True, slots=True)
class Shortened:
    """A tool result that would be shown shortened, and no longer as it is shown now."""

    position: int
    tokens: int
    """As it is shown now."""
    shown: int
    """Tokens of what would be shown of it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a plan is as it is, and what it comes to."""

    trigger: Trigger
    due: Due
    plan: Plan | None
    """What the policy wanted, before it was made legal; None where it wants nothing."""
    leaves: tuple[Share, ...]
    stays: tuple[Share, ...]
    shortened: tuple[Shortened, ...]
    writers: tuple[str, ...]
    """Who would be asked for the summary, in order; nobody where only a notice stands in."""


def explanation_of(order: Order, planned: Planned | Window) -> Explanation:
    """What a policy made of the window, or that it sees no need."""
    if isinstance(planned, Window):
        return Explanation(
            trigger=order.trigger,
            due=due(order.policy, planned),
            plan=None,
            leaves=(),
            stays=_shares(planned.items),
            shortened=(),
            writers=(),
        )
    window, settlement = planned.window, planned.settlement
    stays = [item for item in window.items if item.position in settlement.kept]
    chain = tuple(one.name for one in order.chain.summarisers) or (Extractive().name,)
    needs_summary = planned.material.gone and planned.plan.summary_tokens
    return Explanation(
        trigger=order.trigger,
        due=due(order.policy, window),
        plan=planned.plan,
        leaves=_shares([item for item in window.items if item.position not in settlement.kept]),
        stays=_shares(stays),
        shortened=_shortened(window, stays, settlement.trims),
        writers=chain if needs_summary else (),
    )


def _shares(items: Iterable[Item]) -> tuple[Share, ...]:
    return shares_of((item.kind, item.tokens) for item in items)


def _shortened(window: Window, stays: list[Item], trims: tuple[Trim, ...]) -> tuple[Shortened, ...]:
    by_position = {item.position: item for item in stays}
    found = []
    for trim in trims:
        item = by_position.get(trim.position)
        if item is None:
            continue
        then = window.tokens_of(item, trimmed_length(len(item.block.text), trim))
        if then < item.tokens:
            found.append(Shortened(trim.position, item.tokens, then))
    return tuple(found)

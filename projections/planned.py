"""A policy asked about a window, and its answer made legal: live and replayed by one code path."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..domain.compaction import NOT_SHOWN
from ..domain.compaction_events import Digest
from ..domain.coverage import Settlement, newly_hidden
from ..domain.errors import NothingToCompactError, PolicyFailedError
from ..domain.fitting import settle_to_fit, summary_budget
from ..domain.inventory import inventory_of
from ..domain.item import Item
from ..domain.planned_price import order_of, pricing_of
from ..domain.pricing_in_words import in_words
from ..domain.ranges import Ranges
from ..domain.repairs import FOR_SUMMARY, nothing_to_gain
from ..domain.summaries.form import touches_of
from ..domain.summaries.notice import HIDDEN, Notice
from ..domain.summaries.summariser import Draft, Material
from ..domain.terms import Terms
from ..domain.token_budget import estimate_text
from ..domain.window import Plan, Window
from .history_view import HistoryView
from .rendering.catalog import render

Originals = Callable[[Ranges], Iterable[Item]]
"""Reads blocks from the log, by position."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan made legal, and what its summary is to be written from."""

    window: Window
    plan: Plan
    settlement: Settlement
    material: Material
    planned_on: int
    """The decision of the lineage that the plan was made on."""

    @property
    def previous(self) -> int | None:
        """The boundary that the plan builds upon."""
        return self.window.boundary.originator_version if self.window.boundary else None

    @property
    def tokens_besides(self) -> int:
        """Tokens of the view to come, but for its summary."""
        return self.window.request + self.settlement.kept_tokens

    @property
    def blocks_after(self) -> int:
        """Blocks of the view to come."""
        return sum(item.position in self.settlement.kept for item in self.window.items)

    def post_tokens(self, text: str) -> int:
        """Tokens of the view to come, with this summary."""
        return self.tokens_besides + self.window.as_counted(estimate_text(text))

    def is_written_from(self, other: Material) -> bool:
        """Whether a draft made from the other material can stand for this one's."""
        own = self.material
        return (own.covers, own.prefix, own.previous) == (
            other.covers,
            other.prefix,
            other.previous,
        ) and [item.position for item in own.gone] == [item.position for item in other.gone]


def planned(
    window: Window, view: HistoryView, terms: Terms, originals: Originals, planned_on: int
) -> Planned | None:
    """What would leave the view; None where the policy sees no need.

    `originals` reads what earlier summaries stand for. Raises NothingToCompactError where nothing
    can be gained.
    """
    items = terms.pins.applied(window.items, terms.limit)
    if items is not window.items:
        window = replace(window, items=items, worked_out={})
    plan = _asked(terms, window)
    if plan is None:
        return None
    settlement = settle_to_fit(window, plan)
    found = Planned(
        window=window,
        plan=plan,
        settlement=settlement,
        material=_material(
            window, plan, settlement, terms, partial(render, view), originals=originals
        ),
        planned_on=planned_on,
    )
    check_gain(found, found.tokens_besides, terms)
    check_price(found, terms)
    return found


def _asked(terms: Terms, window: Window) -> Plan | None:
    """What the policy answers; where it finds nothing to cut of a view that is too large for
    the model, a plan without a cut, so that results can be shortened at least."""
    try:
        plan = terms.policy.plan(window)
    except NothingToCompactError as nothing:
        if not 0 < window.limit < window.used:
            raise
        return Plan(cut=None, reason=str(nothing), summary_tokens=window.limit // FOR_SUMMARY)
    if plan is not None and not isinstance(plan, Plan):
        raise PolicyFailedError(
            f"{terms.policy.name} answered {type(plan).__name__} where a Plan or None is wanted"
        )
    return plan


def _material(
    window: Window,
    plan: Plan,
    settlement: Settlement,
    terms: Terms,
    served: Callable[[str], Mapping[str, Any]] | None,
    *,
    originals: Originals,
) -> Material:
    before, gone = window.summary, settlement.gone
    if gone and before is not None and before.summariser == NOT_SHOWN:
        # Nobody can go on with a text that nobody has: what it stood for is summed up from the log,
        # as a request in which it does not stand cannot be.
        before, gone, served = None, tuple(originals(settlement.covers)), None
    return Material(
        gone=gone,
        covers=settlement.covers,
        budget=summary_budget(window, plan, settlement),
        turn_budget=plan.turn_tokens,
        form=plan.form,
        prefix=settlement.split_turn.prefix if settlement.split_turn else Ranges(),
        previous=before.text if before else None,
        previous_sections=before.sections if before else {},
        digest=inventory_of(
            gone,
            before.digest if before else Digest(),
            newly_hidden(window, settlement),
            touches=touches_of(plan.form),
            tracked=terms.tracked_files() if terms.tracked_files else (),
        ),
        instructions=terms.instructions,
        originals=partial(originals, settlement.covers),
        served=served,
    )


def standing(planned: Planned) -> tuple[Draft, str]:
    """What stands for earlier blocks goes on standing for them: nothing new needs a text.

    But a view has to name what was hidden, and does so beside a text alone. With whose it is.
    """
    summary, material = planned.window.summary, planned.material
    text = material.previous or (HIDDEN if planned.settlement.hidden else "")
    return Draft(text, material.previous_sections), (
        summary.summariser if summary else Notice().name
    )


def boundary_fields(planned: Planned, terms: Terms, text: str) -> dict[str, Any]:
    """What a CompactBoundary says of a plan whose summary is `text`."""
    settlement = planned.settlement
    return {
        "after": settlement.after,
        "first_kept": settlement.first_kept,
        "kept": settlement.kept,
        "pinned": settlement.pinned,
        "hidden": settlement.hidden,
        "trims": settlement.trims,
        "replacements": settlement.replacements,
        "split_turn": settlement.split_turn,
        "trigger": terms.trigger,
        "policy": terms.policy.name,
        "pre_tokens": planned.window.tokens,
        "post_tokens": planned.post_tokens(text),
        "repairs": settlement.repairs,
        "previous": planned.previous,
    }


def summary_fields(planned: Planned, draft: Draft, summariser: str) -> dict[str, Any] | None:
    """What a Summary says of a draft; None where blocks are only shown shortened: nothing left."""
    if not draft.text:
        return None
    return {
        "text": draft.text,
        "sections": draft.sections,
        "digest": planned.material.digest,
        "covers": planned.settlement.covers,
        "cites": draft.cites,
        "summariser": summariser,
        "model": draft.model,
        "usage": draft.usage,
        "cost_usd": draft.cost_usd,
        "tokens": estimate_text(draft.text),
    }


def check_gain(planned: Planned, post_tokens: int, terms: Terms) -> None:
    """Raises NothingToCompactError where the view to come is not smaller by what was asked."""
    window = planned.window
    if post_tokens >= window.tokens:
        raise NothingToCompactError(nothing_to_gain(window))
    # Of the blocks and their summary: nothing takes away what a provider adds of its own.
    gained, whole = window.tokens - post_tokens, window.tokens - window.request
    is_refused = 0 < window.limit < window.tokens
    if terms.is_unasked and not is_refused and gained < terms.minimum_gain * whole:
        raise NothingToCompactError(
            f"a compaction would save {gained:,} of {whole:,} tokens, less than the "
            f"{terms.minimum_gain:.0%} that it has to; {nothing_to_gain(window)}"
        )


def check_price(planned: Planned, terms: Terms) -> None:
    """Raises NothingToCompactError where it would cost more than it saves, if that matters."""
    if not terms.must_pay or not terms.is_unasked:
        return
    window, plan, settlement = planned.window, planned.plan, planned.settlement
    bought = order_of(window, planned.material, terms.summary_prices)
    pricing = pricing_of(window, settlement, plan, terms.prices, terms.expected_calls, order=bought)
    if pricing.is_worthwhile() is False:
        raise NothingToCompactError(
            f"a compaction would not pay for itself in {terms.expected_calls} calls: "
            f"{'; '.join(in_words(pricing))}"
        )

"""Finds out what a compaction would take out of the view, before anything is written."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from ...domain.compaction_events import Digest, Trigger
from ...domain.coverage import Settlement, newly_hidden, settle
from ...domain.errors import NothingToCompactError
from ...domain.inventory import inventory_of
from ...domain.planned_price import order_of, pricing_of
from ...domain.pricing_in_words import in_words
from ...domain.ranges import Ranges
from ...domain.repairs import nothing_to_gain
from ...domain.summaries.form import touches_of
from ...domain.summaries.summariser import Material
from ...domain.token_budget import estimate_text
from ...domain.window import Item, Plan, Window
from ...projections.history_view import Entry, History, HistoryView
from ...projections.rendering.catalog import render
from ..event_log.event_store import EventStore
from ..view_reader import ViewReader
from .order import Order
from .seen import Seen


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan made legal, and what its summary is to be written from."""

    window: Window
    plan: Plan
    settlement: Settlement
    material: Material
    planned_on: int
    """The decision of the lineage that the plan was made on."""
    previous: int | None
    """The boundary that the plan builds upon."""

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


class Planner:
    """Asks a policy about the view as it is now, and settles what it answers."""

    def __init__(self, store: EventStore, reader: ViewReader) -> None:
        self.store = store
        self.reader = reader

    def seen(self, order: Order) -> Seen:
        """What a policy would be shown now."""
        return Seen(self.store, self.reader, order, self._recalled)

    def planned(self, order: Order) -> Planned | Window:
        """What would leave; the window alone where the policy sees no need.

        Raises NothingToCompactError where nothing can be gained.
        """
        seen = self.seen(order)
        window = seen.window
        plan = self._asked(order, window)
        if plan is None:
            return window
        window = replace(window, items=order.pins.applied(window.items, order.limit))
        settlement = settle(window, plan)
        planned = Planned(
            window=window,
            plan=plan,
            settlement=settlement,
            material=self._material(seen.view, window, plan, settlement, order),
            planned_on=seen.decided.decided,
            previous=seen.boundary.originator_version if seen.boundary else None,
        )
        check_gain(planned, planned.tokens_besides, order)
        check_price(planned, order)
        return planned

    def _asked(self, order: Order, window: Window) -> Plan | None:
        """What the policy answers; where it finds nothing to cut of a view that is too large for
        the model, a plan without a cut, so that results can be shortened at least."""
        try:
            return order.policy.plan(window)
        except NothingToCompactError as nothing:
            if not 0 < window.limit < window.used:
                raise
            return Plan(cut=None, reason=str(nothing), summary_tokens=0)

    def _material(
        self,
        view: HistoryView,
        window: Window,
        plan: Plan,
        settlement: Settlement,
        order: Order,
    ) -> Material:
        before = window.summary
        return Material(
            gone=settlement.gone,
            covers=settlement.covers,
            budget=plan.summary_tokens,
            turn_budget=plan.turn_tokens,
            form=plan.form,
            prefix=settlement.split_turn.prefix if settlement.split_turn else Ranges(),
            previous=before.text if before else None,
            previous_sections=before.sections if before else {},
            digest=inventory_of(
                settlement.gone,
                before.digest if before else Digest(),
                newly_hidden(window, settlement),
                touches=touches_of(plan.form),
                tracked=order.tracked_files() if order.tracked_files else (),
            ),
            instructions=order.instructions,
            originals=partial(self._originals, settlement.covers),
            served=partial(render, view),
        )

    def _originals(self, covers: Ranges) -> Iterable[Item]:
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        history = History().apply_all(self.store.read(chain, covers))
        return [
            Item(
                position=entry.position,
                block=entry.block,
                turn=entry.turn,
                tokens=entry.tokens,
                call=entry.call,
            )
            for entry in history.entries.values()
        ]

    def _recalled(self, history: History) -> list[Entry]:
        """Blocks that earlier boundaries took out and that were pinned since."""
        if history.boundary is None:
            return []
        if not history.pinned:
            return []
        decided = Ranges.span(1, history.boundary.after)
        missing = (history.pinned & decided) - Ranges.of(history.entries)
        if not missing:
            return []
        chain = self.store.session_chain(self.reader.namespace, self.reader.key)
        missing -= self.reader.retracted(self.store.head(chain)[0])
        pinned = History().apply_all(self.store.read(chain, missing))
        return list(pinned.entries.values())


def check_gain(planned: Planned, post_tokens: int, order: Order) -> None:
    """Raises NothingToCompactError where the view to come is not smaller by what was asked."""
    window = planned.window
    if post_tokens >= window.tokens:
        raise NothingToCompactError(nothing_to_gain(window))
    # Of the blocks and their summary: nothing takes away what a provider adds of its own.
    gained, whole = window.tokens - post_tokens, window.tokens - window.request
    if order.trigger in UNASKED and gained < order.minimum_gain * whole:
        raise NothingToCompactError(
            f"a compaction would save {gained:,} of {whole:,} tokens, less than the "
            f"{order.minimum_gain:.0%} that it has to; {nothing_to_gain(window)}"
        )


def check_price(planned: Planned, order: Order) -> None:
    """Raises NothingToCompactError where it would cost more than it saves, if that matters."""
    if not order.must_pay or order.trigger not in UNASKED:
        return
    window, plan, settlement = planned.window, planned.plan, planned.settlement
    bought = order_of(window, settlement, plan, order.summary_prices)
    pricing = pricing_of(window, settlement, plan, order.prices, order.expected_calls, order=bought)
    if pricing.is_worthwhile() is False:
        raise NothingToCompactError(
            f"a compaction would not pay for itself in {order.expected_calls} calls: "
            f"{'; '.join(in_words(pricing))}"
        )


UNASKED = frozenset({Trigger.THRESHOLD, Trigger.IDLE})
"""Triggers behind which nobody waits: what gains little is not worth a broken cache."""

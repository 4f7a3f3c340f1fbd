"""What a compaction answers with."""

from dataclasses import dataclass

from ....domain.compaction import lineage_id
from ....domain.compaction_events import CompactBoundary, Repair, Summary
from ....domain.context_limit import LimitSource
from ....domain.planned_price import pricing_of
from ....domain.pricing import Pricing
from ....domain.ranges import Ranges
from ....domain.window import Window
from ....projections.planned import Planned
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .explanation import Explanation
from .order import Order
from .summary_chain import Written


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction did, or why it did nothing."""

    compacted: bool
    reason: str
    policy: str
    pre_tokens: int
    post_tokens: int
    boundary: int | None = None
    after: int | None = None
    first_kept: int | None = None
    left: Ranges = Ranges()
    """The blocks that left the view with this boundary."""
    kept: Ranges = Ranges()
    repairs: tuple[Repair, ...] = ()
    split_turn: int | None = None
    summary: str | None = None
    summariser: str | None = None
    rejected: tuple[str, ...] = ()
    """Why other summarisers' drafts were not taken, if this one stood in."""
    called: str | None = None
    """The model of the session's newest call, as it was recorded."""
    pricing: Pricing | None = None
    """What it costs and saves; in tokens only where no prices were given."""
    limit: int | None = None
    """Tokens that a prompt may have; None of a boundary that was drawn before."""
    limit_source: LimitSource | None = None
    explanation: Explanation | None = None
    """Of a dry run: what fires, what was wanted, and what becomes of it."""


def outcome_of(order: Order, planned: Planned, written: Written, boundary: int | None) -> Outcome:
    """What a plan led to, or would lead to; `boundary` is None where nothing was recorded."""
    settlement, window = planned.settlement, planned.window
    return Outcome(
        compacted=boundary is not None,
        reason=planned.plan.reason,
        policy=order.policy.name,
        pre_tokens=window.tokens,
        post_tokens=planned.post_tokens(written.draft.text),
        boundary=boundary,
        after=settlement.after,
        first_kept=settlement.first_kept,
        left=Ranges.of(item.position for item in settlement.gone),
        kept=settlement.kept,
        repairs=settlement.repairs,
        split_turn=settlement.split_turn.turn if settlement.split_turn else None,
        summary=written.draft.text,
        summariser=written.summariser,
        rejected=tuple(map(str, written.refusals)),
        called=window.called,
        limit=order.limit,
        limit_source=order.limit_source,
        pricing=pricing_of(
            window,
            settlement,
            planned.plan,
            window.prices,
            window.expected_calls,
            draft=written.draft,
        ),
    )


def no_need(order: Order, window: Window) -> Outcome:
    """The policy would leave the view as it is."""
    return Outcome(
        compacted=False,
        reason=f"{order.policy.name} sees no need: "
        f"{window.used:,} of {order.limit:,} tokens in use ({order.limit_source.phrase})",
        policy=order.policy.name,
        pre_tokens=window.tokens,
        post_tokens=window.tokens,
        limit=order.limit,
        limit_source=order.limit_source,
    )


def overtaken(order: Order, before: Window, now: Window, reason: str) -> Outcome:
    """Others decided another boundary meanwhile, and nothing is left to do."""
    return Outcome(
        compacted=False,
        reason=f"another compaction was decided while this one was written: {reason}",
        policy=order.policy.name,
        pre_tokens=before.tokens,
        post_tokens=now.tokens,
        limit=order.limit,
        limit_source=order.limit_source,
    )


def done_before(store: EventStore, reader: ViewReader, idempotency_key: str) -> Outcome | None:
    """What the compaction of that key did, where there was one."""
    id = lineage_id(reader.namespace, reader.key, reader.lineage)
    done = store.select_key(id, idempotency_key)
    if done is None:
        return None
    boundary, summary, _ = reader.boundary(done.first)
    return as_stored(boundary, summary, "done before under the same key")


def as_stored(boundary: CompactBoundary, summary: Summary | None, reason: str) -> Outcome:
    """What a boundary did that was drawn before."""
    return Outcome(
        compacted=True,
        reason=reason,
        policy=boundary.policy,
        pre_tokens=boundary.pre_tokens,
        post_tokens=boundary.post_tokens,
        boundary=boundary.originator_version,
        after=boundary.after,
        first_kept=boundary.first_kept,
        left=(summary.covers if summary else Ranges()) - boundary.kept,
        kept=boundary.kept,
        repairs=boundary.repairs,
        split_turn=boundary.split_turn.turn if boundary.split_turn else None,
        summary=summary.text if summary else None,
        summariser=summary.summariser if summary else None,
    )

"""Defines the outcome of a compaction."""

from dataclasses import dataclass

from ....domain.compaction import derive_lineage_id
from ....domain.compaction_events import CompactBoundary, Repair, Summary
from ....domain.context_limit import LimitSource
from ....domain.fitting import price_compaction
from ....domain.pricing import Pricing
from ....domain.ranges import Ranges
from ....domain.window import Window
from ....projections.planned_compaction import PlannedCompaction
from ...storage.event_log.event_store import EventStore
from ...storage.view_reader import ViewReader
from .compaction_request import CompactionRequest
from .explanation import Explanation
from .summary_chain import AcceptedDraft


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
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
    summarizer: str | None = None
    rejected: tuple[str, ...] = ()
    """Why other summarizers' drafts were not accepted."""
    last_model: str | None = None
    """The model of the session's newest recorded call."""
    pricing: Pricing | None = None
    """The compaction's costs and savings; in tokens only if no prices are known."""
    limit: int | None = None
    """The most tokens that a prompt may have; None for a stored boundary."""
    limit_source: LimitSource | None = None
    explanation: Explanation | None = None
    """For a dry run: the trigger, the plan, and what leaves or stays."""


def make_outcome(
    order: CompactionRequest,
    planned: PlannedCompaction,
    written: AcceptedDraft,
    boundary: int | None,
) -> CompactionOutcome:
    settlement, window = planned.settlement, planned.window
    return CompactionOutcome(
        compacted=boundary is not None,
        reason=planned.plan.reason,
        policy=order.policy.name,
        pre_tokens=window.tokens,
        post_tokens=planned.count_post_tokens(written.draft.text),
        boundary=boundary,
        after=settlement.after,
        first_kept=settlement.first_kept,
        left=Ranges.of(item.position for item in settlement.removed_items),
        kept=settlement.kept,
        repairs=settlement.repairs,
        split_turn=settlement.split_turn.turn if settlement.split_turn else None,
        summary=written.draft.text,
        summarizer=written.summarizer,
        rejected=tuple(map(str, written.refusals)),
        last_model=window.called_model,
        limit=order.limit,
        limit_source=order.limit_source,
        pricing=price_compaction(
            window,
            settlement,
            planned.plan,
            window.prices,
            window.expected_calls,
            draft=written.draft,
        ),
    )


def make_no_need_outcome(order: CompactionRequest, window: Window) -> CompactionOutcome:
    """Return the outcome for a policy that leaves the view as it is."""
    return CompactionOutcome(
        compacted=False,
        reason=f"{order.policy.name} sees no need: "
        f"{window.used_tokens:,} of {order.limit:,} tokens in use ({order.limit_source.phrase})",
        policy=order.policy.name,
        pre_tokens=window.tokens,
        post_tokens=window.tokens,
        limit=order.limit,
        limit_source=order.limit_source,
    )


def make_overtaken_outcome(
    order: CompactionRequest, before: Window, now: Window, reason: str
) -> CompactionOutcome:
    """Return the outcome after another boundary left nothing to do."""
    return CompactionOutcome(
        compacted=False,
        reason=f"another compaction was decided while this one was written: {reason}",
        policy=order.policy.name,
        pre_tokens=before.tokens,
        post_tokens=now.tokens,
        limit=order.limit,
        limit_source=order.limit_source,
    )


def find_earlier_outcome(
    store: EventStore, reader: ViewReader, idempotency_key: str
) -> CompactionOutcome | None:
    """Return what the earlier compaction with that key did, None if there is none."""
    id = derive_lineage_id(reader.namespace, reader.key, reader.lineage)
    done = store.select_key(id, idempotency_key)
    if done is None:
        return None
    boundary, summary, _ = reader.read_boundary(done.first)
    return make_stored_outcome(boundary, summary, "done before under the same key")


def make_stored_outcome(
    boundary: CompactBoundary, summary: Summary | None, reason: str
) -> CompactionOutcome:
    return CompactionOutcome(
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
        summarizer=summary.summariser if summary else None,
    )

"""Defines a compaction's outcome; explains a plan, and why a request stays too long."""

from collections.abc import Iterator
from dataclasses import dataclass

from ....domain.compaction_events import CompactBoundary, Repair, Summary, Trigger, Trim
from ....domain.context_limit import LimitSource
from ....domain.errors import ContextOverflowError
from ....domain.item import WindowItem
from ....domain.overflow import Overflow
from ....domain.policies.policy import ThresholdState, measure_threshold
from ....domain.pricing import Pricing
from ....domain.ranges import Ranges
from ....domain.settlement import price_compaction
from ....domain.summaries.extractive import ExtractiveSummarizer
from ....domain.token_estimate import KindShare, compute_kind_shares
from ....domain.trims import count_trimmed_chars
from ....domain.window import Plan, Window
from ....projections.planned_compaction import PlannedCompaction
from .options import CompactionRequest
from .summary_chain import AcceptedDraft


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


@dataclass(frozen=True, slots=True)
class CompactionOutcome:
    """What a compaction did, or why it did nothing."""

    compacted: bool
    reason: str
    policy: str
    pre_tokens: int
    post_tokens: int
    request_tokens: int = 0
    """The part of both sizes that no compaction changes: system prompt, tools, unlogged content."""
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
    request: CompactionRequest,
    planned: PlannedCompaction,
    written: AcceptedDraft,
    boundary: int | None,
) -> CompactionOutcome:
    settlement, window = planned.settlement, planned.window
    return CompactionOutcome(
        compacted=boundary is not None,
        reason=planned.plan.reason,
        policy=request.policy.name,
        pre_tokens=window.tokens,
        post_tokens=planned.count_post_tokens(written.draft.text),
        request_tokens=window.request_tokens,
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
        limit=request.limit,
        limit_source=request.limit_source,
        pricing=price_compaction(
            window,
            settlement,
            planned.plan,
            window.prices,
            window.expected_calls,
            draft=written.draft,
        ),
    )


def make_idle_outcome(
    request: CompactionRequest, before: Window, now: Window | None = None, why: str | None = None
) -> CompactionOutcome:
    """Return the outcome where nothing is left to do: the policy sees no need, or says `why`."""
    no_need = (
        f"{request.policy.name} sees no need: {before.used_tokens:,} of "
        f"{request.limit:,} tokens in use ({request.limit_source.phrase})"
    )
    return CompactionOutcome(
        compacted=False,
        reason=why or no_need,
        policy=request.policy.name,
        pre_tokens=before.tokens,
        post_tokens=(now or before).tokens,
        limit=request.limit,
        limit_source=request.limit_source,
    )


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
        summarizer=summary.summarizer if summary else None,
    )


def explain_plan(request: CompactionRequest, planned: PlannedCompaction | Window) -> Explanation:
    """Explain the policy's plan, or why it asks for none."""
    plan, trims, writers = None, tuple[Trim, ...](), tuple[str, ...]()
    if isinstance(planned, Window):
        window, kept = planned, list(planned.items)
    else:
        window, plan, settlement = planned.window, planned.plan, planned.settlement
        kept = [item for item in window.items if item.position in settlement.kept]
        trims = settlement.trims
        names = [one.name for one in request.chain.summarizers] or [ExtractiveSummarizer().name]
        writers = tuple(names) if planned.material.removed_items and plan.summary_tokens else ()
    stays = {item.position for item in kept}
    left = [item for item in window.items if item.position not in stays]
    return Explanation(
        trigger=request.trigger,
        due=measure_threshold(request.policy, window),
        plan=plan,
        leaves=compute_kind_shares((item.kind, item.tokens) for item in left),
        stays=compute_kind_shares((item.kind, item.tokens) for item in kept),
        shortened=tuple(_find_shortened(window, kept, trims)),
        writers=writers,
    )


def _find_shortened(
    window: Window, stays: list[WindowItem], trims: tuple[Trim, ...]
) -> Iterator[ResultShortening]:
    by_position = {item.position: item for item in stays}
    for trim in trims:
        if item := by_position.get(trim.position):
            shown = count_trimmed_chars(len(item.block.text), trim)
            then = window.count_item_tokens(item, shown)
            if then < item.tokens:
                yield ResultShortening(trim.position, item.tokens, then)


OVERFLOW_HINTS = (
    "compact it with a policy that keeps less (`cutbank compact`, an agent's /compact)",
    "unpin or hide blocks that must stay; `recall` still returns every word of them",
    "use a model with a larger context (/model)",
    "begin a session that recalls what it needs from this one (/clear)",
)
"""The remedies when no more blocks may leave, in terms that agents use."""
_MAX_NAMED = 3


def make_overflow_error(
    window: Window, overflow: Overflow, model: str | None, why: str
) -> ContextOverflowError:
    """Return the error of a refused request that a compaction cannot make short enough."""
    tokens = overflow.tokens or window.used_tokens
    limit = overflow.limit or (window.limit if window.limit > 0 else None)
    largest = sorted(window.items, key=lambda item: -item.tokens)[:_MAX_NAMED]
    named = ", ".join(f"#{item.position} {item.kind} {item.tokens:,} tokens" for item in largest)
    holds = f"{tokens:,} of {limit:,} tokens" if limit else f"{tokens:,} tokens"
    return ContextOverflowError(
        f"the request is too long for {model or 'its model'} ({holds}): {why}"
        + (f"; the largest blocks are {named}" if named and named not in why else "")
        + f"; what helps: {'; '.join(OVERFLOW_HINTS)}",
        model=model,
        tokens=tokens,
        limit=limit,
        largest=tuple(item.position for item in largest),
        hints=OVERFLOW_HINTS,
    )

"""Asks a policy about a window and makes its answer legal, for live sessions and replays alike."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..domain.blocks import BlockKind
from ..domain.compaction import UNSHOWN_SUMMARIZER
from ..domain.compaction_events import Digest, RecordedCalibration
from ..domain.compaction_terms import CompactionTerms
from ..domain.digest import build_digest
from ..domain.errors import NothingToCompactError, PolicyFailedError
from ..domain.item import WindowItem
from ..domain.plan_repairs import SUMMARY_DIVISOR, explain_no_gain
from ..domain.pricing import format_dollars
from ..domain.ranges import Ranges
from ..domain.session_events import BlockAppended
from ..domain.settlement import (
    Settlement,
    compute_summary_budget,
    list_newly_hidden,
    price_compaction,
    settle_plan_to_fit,
)
from ..domain.summaries.summarizer import HIDDEN_TEXT, Draft, Material, NoticeSummarizer
from ..domain.token_estimate import ContentKind, estimate_text
from ..domain.window import Plan, Window
from .view_content import RecordedEvent

OriginalsReader = Callable[[Ranges], Iterable[WindowItem]]
"""Reads blocks from the log, by position."""
ServedPrompt = Callable[[str], Mapping[str, Any]]
"""Returns the request of the view that is served now, in a provider's format."""


@dataclass(frozen=True, slots=True)
class PlannedCompaction:
    """A plan made legal, with the material for its summary."""

    window: Window
    plan: Plan
    settlement: Settlement
    material: Material
    based_on: int
    """The decision of the lineage on which the plan was made."""

    @property
    def previous(self) -> int | None:
        return self.window.boundary.originator_version if self.window.boundary else None

    @property
    def tokens_without_summary(self) -> int:
        return self.window.request_tokens + self.settlement.kept_tokens

    @property
    def blocks_after(self) -> int:
        return sum(item.position in self.settlement.kept for item in self.window.items)

    def count_post_tokens(self, text: str) -> int:
        """Return the tokens of the new view, with this summary."""
        return self.tokens_without_summary + self.window.convert_estimate(estimate_text(text))

    def is_written_from(self, other: Material) -> bool:
        """Check whether a draft from the other material also fits this one."""

        def describe(material: Material) -> tuple[object, ...]:
            removed = [item.position for item in material.removed_items]
            return material.covers, material.prefix, material.previous, removed

        return describe(self.material) == describe(other)


def plan_compaction(
    window: Window,
    terms: CompactionTerms,
    originals: OriginalsReader,
    based_on: int,
    served_prompt: ServedPrompt | None = None,
) -> PlannedCompaction | None:
    """Return what would leave the view; None if the policy sees no need.

    `originals` reads the blocks that earlier summaries cover. Raises NothingToCompactError if
    nothing can be gained.
    """
    items = terms.pins.apply(window.items, terms.limit)
    if items is not window.items:
        window = replace(window, items=items, memo={})
    plan = _ask_policy(terms, window)
    if plan is None:
        return None
    settlement = settle_plan_to_fit(window, plan)
    found = PlannedCompaction(
        window=window,
        plan=plan,
        settlement=settlement,
        material=_make_material(
            window, plan, settlement, terms, originals=originals, served_prompt=served_prompt
        ),
        based_on=based_on,
    )
    check_gain(found, found.tokens_without_summary, terms)
    _check_price(found, terms)
    return found


def _ask_policy(terms: CompactionTerms, window: Window) -> Plan | None:
    """Return the policy's answer.

    If it finds nothing to cut in a view that is too large for the model, return a plan without a
    cut, so that results can be shortened at least.
    """
    try:
        plan = terms.policy.plan(window)
    except NothingToCompactError as nothing:
        if not 0 < window.limit < window.used_tokens:
            raise
        return Plan(cut=None, reason=str(nothing), summary_tokens=window.limit // SUMMARY_DIVISOR)
    if plan is not None and not isinstance(plan, Plan):
        raise PolicyFailedError(
            f"{terms.policy.name} answered {type(plan).__name__} where a Plan or None is wanted"
        )
    return plan


def _make_material(
    window: Window,
    plan: Plan,
    settlement: Settlement,
    terms: CompactionTerms,
    *,
    originals: OriginalsReader,
    served_prompt: ServedPrompt | None,
) -> Material:
    before, gone = window.summary, settlement.removed_items
    if gone and before is not None and before.summarizer == UNSHOWN_SUMMARIZER:
        # An unknown text cannot be updated, so summarize its blocks from the log; the served prompt
        # lacks them too.
        before, gone, served_prompt = None, tuple(originals(settlement.covers)), None
    return Material(
        removed_items=gone,
        covers=settlement.covers,
        budget=compute_summary_budget(window, plan, settlement),
        turn_budget=plan.turn_tokens,
        template=plan.template,
        prefix=settlement.split_turn.prefix if settlement.split_turn else Ranges(),
        previous=before.text if before else None,
        previous_sections=before.sections if before else {},
        digest=build_digest(
            gone,
            before.digest if before else Digest(),
            list_newly_hidden(window, settlement),
            touches=getattr(plan.template, "find_touches", None),
            tracked=terms.tracked_files() if terms.tracked_files else (),
        ),
        instructions=terms.instructions,
        kept_items=tuple(item for item in window.items if item.position in settlement.kept),
        originals=originals,
        served_prompt=served_prompt,
    )


def list_user_texts(
    draft: Draft, material: Material, read: Callable[[Ranges], Iterable[RecordedEvent]]
) -> list[str]:
    """Return the user's texts that the draft may quote: those that leave and those it cites."""
    texts = {
        item.position: item.block.text
        for item in material.removed_items
        if item.kind is BlockKind.USER
    }
    for recorded in read(draft.cites - Ranges.of(texts)):
        event = recorded.event
        if isinstance(event, BlockAppended) and event.block.kind is BlockKind.USER:
            texts[recorded.position] = event.block.text
    return list(texts.values())


def reuse_summary(planned: PlannedCompaction) -> tuple[Draft, str]:
    """Return the earlier summary and its author's name, since nothing new needs a text.

    A view can name hidden blocks only next to a text, so an empty one is replaced by a notice.
    """
    summary, material = planned.window.summary, planned.material
    text = material.previous or (HIDDEN_TEXT if planned.settlement.hidden else "")
    return Draft(text, material.previous_sections), (
        summary.summarizer if summary else NoticeSummarizer().name
    )


def make_boundary_fields(
    planned: PlannedCompaction, terms: CompactionTerms, text: str
) -> dict[str, Any]:
    """Return the fields of a CompactBoundary for a plan whose summary is `text`."""
    settled = [
        "after",
        "first_kept",
        "kept",
        "pinned",
        "hidden",
        "trims",
        "replacements",
        "split_turn",
        "repairs",
    ]
    return {
        **{name: getattr(planned.settlement, name) for name in settled},
        "trigger": terms.trigger,
        "policy": terms.policy.name,
        "pre_tokens": planned.window.tokens,
        "post_tokens": planned.count_post_tokens(text),
        "calibration": _record_calibration(planned.window),
        "previous": planned.previous,
    }


def _record_calibration(window: Window) -> RecordedCalibration | None:
    calibration = window.calibration
    if window.usage is None and not calibration.has_learned:
        return None
    return RecordedCalibration(
        model=calibration.model,
        ratios={kind: calibration.get_ratio(kind) for kind in ContentKind}
        if calibration.has_learned
        else {},
        request_tokens=window.request_tokens,
    )


def make_summary_fields(
    planned: PlannedCompaction, draft: Draft, summarizer: str
) -> dict[str, Any] | None:
    """Return the fields of a Summary for a draft; None if blocks were only shortened."""
    if not draft.text:
        return None
    return {
        "text": draft.text,
        "sections": draft.sections,
        "digest": planned.material.digest,
        "covers": planned.settlement.covers,
        "cites": draft.cites,
        "summarizer": summarizer,
        "model": draft.model,
        "usage": draft.usage,
        "cost_usd": draft.cost_usd,
        "tokens": estimate_text(draft.text),
    }


def check_gain(planned: PlannedCompaction, post_tokens: int, terms: CompactionTerms) -> None:
    """Raise NothingToCompactError if the new view is not smaller by the required gain."""
    window = planned.window
    if post_tokens >= window.tokens:
        raise NothingToCompactError(explain_no_gain(window))
    # A share of the blocks and their summary, because no compaction removes what a provider adds.
    gained, whole = window.tokens - post_tokens, window.tokens - window.request_tokens
    is_refused = 0 < window.limit < window.tokens
    if terms.is_automatic and not is_refused and gained < terms.minimum_gain * whole:
        raise NothingToCompactError(
            f"a compaction would save {gained:,} of {whole:,} tokens, less than the "
            f"{terms.minimum_gain:.0%} that it has to; {explain_no_gain(window)}"
        )


def _check_price(planned: PlannedCompaction, terms: CompactionTerms) -> None:
    """Raise NothingToCompactError if an automatic compaction that must pay for itself would not."""
    if not terms.require_saving or not terms.is_automatic:
        return
    pricing = price_compaction(
        planned.window, planned.settlement, planned.plan, terms.prices, terms.expected_calls
    )
    if pricing.is_worthwhile() is False:
        raise NothingToCompactError(
            f"a compaction would not pay for itself in {terms.expected_calls} calls: "
            f"it would save {format_dollars(pricing.saved_usd or 0.0)}, "
            f"and cost {format_dollars(pricing.cost_usd or 0.0)}"
        )

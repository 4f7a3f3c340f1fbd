"""Shows the outcome of a compaction, its explanation and its price, as lines and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ....domain.compaction_events import Repair
from ....domain.policies.policy import ThresholdState
from ....domain.pricing import Pricing
from ....domain.ranges import Ranges
from ....domain.token_estimate import PromptSizeChange, SizeBasis
from ....domain.window import OnFailure, Plan
from ...runtime.compaction.outcome import CompactionOutcome, Explanation
from .printing import format_count, format_handles, format_shares, pick

COST_DIGITS = 6
"""Decimal places of dollars."""

_REPLACEMENT_TEXTS = {
    "summary": "a summary of what leaves",
    "notice": "a notice that blocks left, and no summary",
    None: "nothing: no block leaves",
}
_FALLBACK_TEXTS = {
    OnFailure.EXTRACTIVE: "rules write it",
    OnFailure.NOTICE: "a notice says so",
    OnFailure.UNCHANGED: "nothing changes",
}


def outcome_to_json(outcome: CompactionOutcome, lineage: str) -> dict[str, Any]:
    return {
        "lineage": lineage,
        **pick(outcome, "compacted reason policy pre_tokens post_tokens"),
        "tokens_basis": SizeBasis.ESTIMATED,
        **pick(outcome, "limit limit_source boundary after first_kept left kept split_turn"),
        "repairs": [repair_to_json(repair) for repair in outcome.repairs],
        **pick(outcome, "summary summariser=summarizer rejected"),
    }


def repair_to_json(repair: Repair) -> dict[str, Any]:
    return pick(repair, "rule wanted got stays leaves trimmed")


def pricing_to_json(pricing: Pricing) -> dict[str, Any]:
    """Return a price as `compact --dry-run --json` prints it; unknown values are null."""
    model = pricing.model
    dollars: dict[str, float | None] = pick(
        pricing,
        "saves_per_call_usd=saved_per_call_usd saves_usd=saved_usd"
        " breaks_cache_usd=cache_loss_usd summary_usd net_usd",
    )
    return {
        "model": model.name if model else None,
        "provider": model.provider if model else None,
        **pick(
            pricing,
            "expected_calls saves_tokens=tokens_saved unchanged_tokens=unchanged"
            " cached_tokens=cached breaks_cache_tokens=cache_tokens_lost",
        ),
        **{name: usd if usd is None else round(usd, COST_DIGITS) for name, usd in dollars.items()},
        "pays_after": pricing.break_even_calls,
        "is_worthwhile": pricing.is_worthwhile(),
    }


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    due, plan = explanation.due, explanation.plan
    return {
        "trigger": explanation.trigger,
        **pick(due, "fires used=used_tokens limit threshold"),
        "wanted": plan
        and {
            **pick(plan, "cut drops"),
            "trims": Ranges.of(trim.position for trim in plan.trims),
            **pick(plan, "summary_tokens turn_tokens on_failure"),
        },
        "leaves": [asdict(share) for share in explanation.leaves],
        "stays": [asdict(share) for share in explanation.stays],
        "shortened": [
            {"handle": f"#{one.position}", **pick(one, "tokens shown")}
            for one in explanation.shortened
        ],
        "stands_in": _find_replacement(explanation),
        "writers": explanation.writers,
    }


def list_outcome_fields(outcome: CompactionOutcome) -> Iterator[tuple[str, str]]:
    """Yield the labels and values of a compaction, or of one that a dry run made."""
    sizes = PromptSizeChange(outcome.pre_tokens, outcome.post_tokens, SizeBasis.ESTIMATED)
    yield "view", f"{sizes}, {1 - outcome.post_tokens / outcome.pre_tokens:.0%} less"
    if outcome.limit and outcome.limit_source:
        yield "limit", f"{outcome.limit:,} tokens ({outcome.limit_source.phrase})"
    yield "why", outcome.reason
    left = f"{format_count(len(outcome.left), 'block')}: {format_handles(outcome.left)}"
    yield "left", left if outcome.left else "nothing; results are shown shortened"
    yield "kept", f"from #{outcome.first_kept} on"
    if outcome.split_turn:
        yield "split", f"turn {outcome.split_turn}: its beginning left, the rest stays"
    yield from (("repair", describe_repair(repair)) for repair in outcome.repairs)
    if outcome.left:
        yield "summary", f"by {outcome.summarizer}"
    yield from (("rejected", complaint) for complaint in outcome.rejected)


def list_explanation_fields(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yield the labels and values that those of the outcome do not include."""
    yield "due", _describe_due(explanation.due)
    if explanation.plan is None:
        return
    yield "wanted", "; ".join(_list_wishes(explanation.plan))
    yield "leaves", format_shares(explanation.leaves)
    yield "stays", format_shares(explanation.stays)
    for one in explanation.shortened:
        yield "shorter", f"#{one.position}: {one.tokens:,} -> {one.shown:,} tokens are shown"
    yield "instead", _REPLACEMENT_TEXTS[_find_replacement(explanation)]
    if explanation.writers:
        fallback = _FALLBACK_TEXTS[explanation.plan.on_failure]
        yield "by", f"{' or '.join(explanation.writers)}; if no summarizer can, {fallback}"


def describe_repair(repair: Repair) -> str:
    changes = [
        f"#{repair.wanted} was wanted, #{repair.got} is legal" if repair.got is not None else "",
        f"stays: {format_handles(repair.stays)}" if repair.stays else "",
        f"leaves as well: {format_handles(repair.leaves)}" if repair.leaves else "",
        f"shown shortened: {format_handles(repair.trimmed)}" if repair.trimmed else "",
    ]
    return f"{repair.rule}: {'; '.join(filter(None, changes))}"


def _find_replacement(explanation: Explanation) -> str | None:
    """Return `summary` or `notice`; None if what leaves needs neither."""
    if explanation.writers:
        return "summary"
    return "notice" if explanation.leaves else None


def _describe_due(state: ThresholdState) -> str:
    fires = "it would fire by itself" if state.fires else "it would not fire by itself"
    of = f" of {state.limit:,}" if state.limit > 0 else ""
    at = "" if state.threshold is None else f", and it fires at {state.threshold:,}"
    return f"{fires}: {state.used_tokens:,}{of} tokens are in use{at}"


def _list_wishes(plan: Plan) -> Iterator[str]:
    if plan.cut is not None:
        yield f"to keep what begins at #{plan.cut}"
    if plan.drops:
        yield f"to drop {format_count(len(plan.drops), 'block')}: {format_handles(plan.drops)}"
    if plan.trims:
        yield f"to shorten {format_count(len(plan.trims), 'tool result')}"
    if plan.cut is None and not plan.drops and not plan.trims:
        yield "nothing that may leave"
    most = f"a summary of up to {plan.summary_tokens:,} tokens"
    yield most if plan.summary_tokens else "no summary"
    if plan.turn_tokens:
        yield f"{plan.turn_tokens:,} more for a split turn's beginning"

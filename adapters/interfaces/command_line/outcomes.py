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
from .printing import format_count, format_handles, format_shares, pick, print_text

COST_DIGITS = 6
"""Decimal places of dollars."""

_REPLACEMENT_TEXTS = {
    "summary": "a summary of what leaves",
    "notice": "a notice that blocks left, and no summary",
    None: "nothing: no block leaves",
}
_FALLBACK_TEXTS = {
    OnFailure.EXTRACTIVE: "if no summarizer can, rules write it",
    OnFailure.NOTICE: "if no summarizer can, a notice says so",
    OnFailure.UNCHANGED: "if no summarizer can, nothing changes",
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
        "stands_in": _replacement_kind(explanation),
        "writers": explanation.writers,
    }


def print_outcome(
    session: str, lineage: str, outcome: CompactionOutcome, number: int | None, *, is_served: bool
) -> None:
    if outcome.summary is None:
        print_text(f"{session} was not compacted: {outcome.reason}")
        return
    saved = 1 - outcome.post_tokens / outcome.pre_tokens
    what = f"compaction {number} on {lineage}" if outcome.compacted else "a dry run"
    print_text(f"{session}: {what}, by {outcome.policy}", bold=True)
    sizes = PromptSizeChange(outcome.pre_tokens, outcome.post_tokens, SizeBasis.ESTIMATED)
    print_text(f"view     {sizes}, {saved:.0%} less")
    if outcome.limit and outcome.limit_source:
        print_text(f"limit    {outcome.limit:,} tokens ({outcome.limit_source.phrase})")
    print_text(f"why      {outcome.reason}")
    left = f"{format_count(len(outcome.left), 'block')}: {format_handles(outcome.left)}"
    print_text(f"left     {left if outcome.left else 'nothing; results are shown shortened'}")
    print_text(f"kept     from #{outcome.first_kept} on")
    if outcome.split_turn:
        print_text(f"split    turn {outcome.split_turn}: its beginning left, the rest stays")
    for repair in outcome.repairs:
        print_text(f"repair   {describe_repair(repair)}")
    if outcome.left:
        print_text(f"summary  by {outcome.summarizer}")
    for complaint in outcome.rejected:
        print_text(f"         it stood in for another: {complaint}")
    if outcome.compacted and not is_served:
        print_text(
            "It is prepared: an agent's loop serves it at the threshold, `cutbank activate` now."
        )
    elif outcome.compacted:
        print_text("`cutbank view` shows what is served, `cutbank recall` shows what left.")


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines that the printed outcome does not include."""
    yield f"due      {_describe_due(explanation.due)}"
    if explanation.plan is None:
        return
    yield f"wanted   {'; '.join(_plan_lines(explanation.plan))}"
    yield f"leaves   {format_shares(explanation.leaves)}"
    yield f"stays    {format_shares(explanation.stays)}"
    for one in explanation.shortened:
        yield f"shorter  #{one.position}: {one.tokens:,} -> {one.shown:,} tokens are shown"
    yield f"instead  {_REPLACEMENT_TEXTS[_replacement_kind(explanation)]}"
    if explanation.writers:
        unwritten = _FALLBACK_TEXTS[explanation.plan.on_failure]
        yield f"         by {' or '.join(explanation.writers)}; {unwritten}"


def describe_repair(repair: Repair) -> str:
    changes = [
        f"#{repair.wanted} was wanted, #{repair.got} is legal" if repair.got is not None else "",
        f"stays: {format_handles(repair.stays)}" if repair.stays else "",
        f"leaves as well: {format_handles(repair.leaves)}" if repair.leaves else "",
        f"shown shortened: {format_handles(repair.trimmed)}" if repair.trimmed else "",
    ]
    return f"{repair.rule}: {'; '.join(filter(None, changes))}"


def _replacement_kind(explanation: Explanation) -> str | None:
    """Return `summary` or `notice`; None if what leaves needs neither."""
    if explanation.writers:
        return "summary"
    return "notice" if explanation.leaves else None


def _describe_due(found: ThresholdState) -> str:
    said = "it would fire by itself" if found.fires else "it would not fire by itself"
    said += f": {found.used_tokens:,}"
    if found.limit > 0:
        said += f" of {found.limit:,}"
    said += " tokens are in use"
    if found.threshold is None:
        return said
    return f"{said}, and it fires at {found.threshold:,}"


def _plan_lines(plan: Plan) -> Iterator[str]:
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

"""Writes the explanation of a dry run, as lines and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from ....domain.compaction_events import Repair
from ....domain.policies.policy import ThresholdState
from ....domain.ranges import Ranges
from ....domain.token_estimate import KindShare
from ....domain.window import OnFailure, Plan
from ...runtime.compaction.outcome import Explanation
from .printing import format_count, format_handles, list_handle_ranges


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as `compact --dry-run --json` prints it."""
    found, plan = explanation.due, explanation.plan
    return {
        "trigger": explanation.trigger.value,
        "fires": found.fires,
        "used": found.used_tokens,
        "limit": found.limit,
        "threshold": found.threshold,
        "wanted": plan and _plan_to_json(plan),
        "leaves": _shares_to_json(explanation.leaves),
        "stays": _shares_to_json(explanation.stays),
        "shortened": [
            {"handle": f"#{one.position}", "tokens": one.tokens, "shown": one.shown}
            for one in explanation.shortened
        ],
        "stands_in": _replacement_kind(explanation),
        "writers": list(explanation.writers),
    }


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines that the printed outcome does not include."""
    yield f"due      {_describe_due(explanation.due)}"
    if explanation.plan is None:
        return
    yield f"wanted   {'; '.join(_plan_lines(explanation.plan))}"
    yield f"leaves   {_format_shares(explanation.leaves)}"
    yield f"stays    {_format_shares(explanation.stays)}"
    for one in explanation.shortened:
        yield f"shorter  #{one.position}: {one.tokens:,} -> {one.shown:,} tokens are shown"
    yield f"instead  {_REPLACEMENT_TEXTS[_replacement_kind(explanation)]}"
    if explanation.writers:
        unwritten = _FALLBACK_TEXTS[explanation.plan.on_failure]
        yield f"         by {' or '.join(explanation.writers)}; {unwritten}"


def describe_repair(repair: Repair) -> str:
    """Describe which rule changed what in a plan."""
    changes = [
        f"#{repair.wanted} was wanted, #{repair.got} is legal" if repair.got is not None else "",
        f"stays: {format_handles(repair.stays)}" if repair.stays else "",
        f"leaves as well: {format_handles(repair.leaves)}" if repair.leaves else "",
        f"shown shortened: {format_handles(repair.trimmed)}" if repair.trimmed else "",
    ]
    return f"{repair.rule}: {'; '.join(filter(None, changes))}"


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    return {
        "cut": plan.cut,
        "drops": list_handle_ranges(plan.drops),
        "trims": list_handle_ranges(Ranges.of(trim.position for trim in plan.trims)),
        "summary_tokens": plan.summary_tokens,
        "turn_tokens": plan.turn_tokens,
        "on_failure": plan.on_failure.value,
    }


def _shares_to_json(shares: Sequence[KindShare]) -> list[dict[str, Any]]:
    return [
        {"kind": share.kind.value, "blocks": share.blocks, "tokens": share.tokens}
        for share in shares
    ]


def _replacement_kind(explanation: Explanation) -> str | None:
    """Return `summary` or `notice`; None if what leaves needs neither."""
    if explanation.writers:
        return "summary"
    return "notice" if explanation.leaves else None


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


def _format_shares(shares: Sequence[KindShare]) -> str:
    told = (f"{share.blocks:,} {share.kind} with {share.tokens:,} tokens" for share in shares)
    return ", ".join(told) or "nothing"

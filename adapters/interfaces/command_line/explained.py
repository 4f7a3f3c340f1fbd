"""Says a dry run's explanation: in lines for people, and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from ....domain.compaction_events import Repair
from ....domain.policies.threshold import Due
from ....domain.ranges import Ranges
from ....domain.shares import Share
from ....domain.window import OnFailure, Plan
from ...runtime.compaction.explanation import Explanation
from .printing import counted, runs, shortly


def explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation as `compact --dry-run --json` says it."""
    found, plan = explanation.due, explanation.plan
    return {
        "trigger": explanation.trigger.value,
        "fires": found.fires,
        "used": found.used,
        "limit": found.limit,
        "threshold": found.threshold,
        "wanted": plan and _wanted_as_json(plan),
        "leaves": _shares_as_json(explanation.leaves),
        "stays": _shares_as_json(explanation.stays),
        "shortened": [
            {"handle": f"#{one.position}", "tokens": one.tokens, "shown": one.shown}
            for one in explanation.shortened
        ],
        "stands_in": _stands_in(explanation),
        "writers": list(explanation.writers),
    }


def in_lines(explanation: Explanation) -> Iterator[str]:
    """What people are told of it, besides what an outcome says."""
    yield f"due      {_due(explanation.due)}"
    if explanation.plan is None:
        return
    yield f"wanted   {'; '.join(_wanted(explanation.plan))}"
    yield f"leaves   {_shares(explanation.leaves)}"
    yield f"stays    {_shares(explanation.stays)}"
    for one in explanation.shortened:
        yield f"shorter  #{one.position}: {one.tokens:,} -> {one.shown:,} tokens are shown"
    yield f"instead  {_INSTEAD[_stands_in(explanation)]}"
    if explanation.writers:
        unwritten = _UNWRITTEN[explanation.plan.on_failure]
        yield f"         by {' or '.join(explanation.writers)}; {unwritten}"


def repair_in_words(repair: Repair) -> str:
    """Which rule changed what in a plan."""
    changes = [
        f"#{repair.wanted} was wanted, #{repair.got} is legal" if repair.got is not None else "",
        f"stays: {shortly(repair.stays)}" if repair.stays else "",
        f"leaves as well: {shortly(repair.leaves)}" if repair.leaves else "",
        f"shown shortened: {shortly(repair.trimmed)}" if repair.trimmed else "",
    ]
    return f"{repair.rule}: {'; '.join(filter(None, changes))}"


def _wanted_as_json(plan: Plan) -> dict[str, Any]:
    return {
        "cut": plan.cut,
        "drops": runs(plan.drops),
        "trims": runs(Ranges.of(trim.position for trim in plan.trims)),
        "summary_tokens": plan.summary_tokens,
        "turn_tokens": plan.turn_tokens,
        "on_failure": plan.on_failure.value,
    }


def _shares_as_json(shares: Sequence[Share]) -> list[dict[str, Any]]:
    return [
        {"kind": share.kind.value, "blocks": share.blocks, "tokens": share.tokens}
        for share in shares
    ]


def _stands_in(explanation: Explanation) -> str | None:
    """`summary`, `notice`, or None where nothing leaves that needs either."""
    if explanation.writers:
        return "summary"
    return "notice" if explanation.leaves else None


_INSTEAD = {
    "summary": "a summary of what leaves",
    "notice": "a notice that blocks left, and no summary",
    None: "nothing: no block leaves",
}


_UNWRITTEN = {
    OnFailure.EXTRACTIVE: "where nobody else can, one by rules",
    OnFailure.NOTICE: "where nobody can, a notice",
    OnFailure.UNCHANGED: "where nobody can, nothing is done",
}


def _due(found: Due) -> str:
    said = "it would fire by itself" if found.fires else "it would not fire by itself"
    said += f": {found.used:,}"
    if found.limit > 0:
        said += f" of {found.limit:,}"
    said += " tokens are in use"
    if found.threshold is None:
        return said
    return f"{said}, and it fires at {found.threshold:,}"


def _wanted(plan: Plan) -> Iterator[str]:
    if plan.cut is not None:
        yield f"to keep what begins at #{plan.cut}"
    if plan.drops:
        yield f"to drop {counted(len(plan.drops), 'block')}: {shortly(plan.drops)}"
    if plan.trims:
        yield f"to shorten {counted(len(plan.trims), 'tool result')}"
    if plan.cut is None and not plan.drops and not plan.trims:
        yield "nothing that may leave"
    most = f"a summary of up to {plan.summary_tokens:,} tokens"
    yield most if plan.summary_tokens else "no summary"
    if plan.turn_tokens:
        yield f"{plan.turn_tokens:,} more for a split turn's beginning"


def _shares(shares: Sequence[Share]) -> str:
    told = (f"{share.blocks:,} {share.kind} with {share.tokens:,} tokens" for share in shares)
    return ", ".join(told) or "nothing"

"""Seed 001, line by line against what the original program answered."""

from collections.abc import Iterable
from typing import Any

import pytest
from dialects.qbit import aggregated
from qbit_vectors import Case, case_of
from vector_files import FOLDERS, lines_of

from cutbank import Ranges, ScoredPruning
from cutbank.adapters.runtime.compaction.event_sink import context_pruned, context_warning, stats
from cutbank.domain.context_limit import UsageLevel
from cutbank.domain.cut_points import find_orphans
from cutbank.domain.item import Message

INTERNAL = {
    UsageLevel.WARNING: "WarningThreshold",
    UsageLevel.ALERT: "AlertThreshold",
    UsageLevel.CRITICAL: "ContextExceeded",
}
"""What the original's context module tells the rest of it at each level."""


def ids_of(case: Case, messages: Iterable[Message]) -> list[list[str]]:
    """The neutral blocks of each message; its images are of the same block."""
    return [
        list(dict.fromkeys(case.ids[item.position] for item in message.items))
        for message in messages
    ]


def fields(event: dict[str, Any]) -> dict[str, Any]:
    """An event without its type, as the original's own record of it has it."""
    return {name: value for name, value in event.items() if name != "type"}


@pytest.mark.claim("S1.2", "S1.3", "S1.15", "S1.18", "S1.19", "S1.23", "S1.24")
@FOLDERS
def test_vectors_are_answered(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "qbit")):
        policy, weighed = case.policy(), case.policy().weigh(case.window.items)
        level = policy.measure_level(case.window)
        target = policy.compute_target(level)
        stays = policy.choose_staying(weighed, level.tokens, target)
        found = {
            "message_block_ids": ids_of(case, weighed.messages),
            "message_tokens": list(weighed.tokens),
            "scores": list(weighed.scores),
            "priorities": list(weighed.priorities),
            **stats(weighed),
            "utilization": level.share,
            "alert_level": level.level,
            "target_tokens": target,
            "trigger": policy.fires(case.window),
            "preview_kept": sorted(stays),
            "preview_pruned": [i for i in range(len(weighed.messages)) if i not in stays],
            "preview_needed": level.tokens > target,
            **prune(case, policy),
        }
        assert found == {name: case.expected[name] for name in found}, case.name


def prune(case: Case, policy: ScoredPruning) -> dict[str, Any]:
    """What leaves, and what is said of it."""
    window, plan = case.window, policy.plan(case.window)
    drops = plan.drops if plan else Ranges()
    gone = [item for item in window.items if item.position in drops]
    kept = Ranges.of(case.ids) - drops
    pruned = policy.describe_pruning(window, gone) if plan else None
    warning = policy.find_warning(window) if plan is None else None
    alone = find_orphans(window.items, kept)
    events = [INTERNAL.get(policy.measure_level(window).level)]
    if pruned:
        events += [INTERNAL.get(pruned.after.level), "ContextPruned"]
    return {
        "acted": plan is not None,
        "kept_ids": list(dict.fromkeys(case.ids[at] for at in kept)),
        "pruned_ids": list(dict.fromkeys(case.ids[at] for at in drops)),
        "warning": fields(context_warning(warning)) if warning else None,
        "pruned": fields(context_pruned(pruned)) if pruned else None,
        "internal_events": list(filter(None, events)),
        "orphaned_tool_results": sorted(alone.results),
        "orphaned_tool_calls": sorted(alone.calls),
    }


@pytest.mark.claim("S1.25")
@FOLDERS
def test_vectors_of_how_tool_results_are_truncated(folder: str) -> None:
    for vector in lines_of(folder, "qbit_truncation"):
        told = aggregated(vector["input"], vector["max_tokens"])
        assert told == vector["expected"], vector["input"][:60]

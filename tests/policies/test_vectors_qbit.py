"""Seed 001, line by line against what the original program answered."""

from collections.abc import Iterable
from typing import Any

import pytest
from dialects.qbit import aggregated
from qbit_vectors import Case, case_of
from vector_files import FOLDERS, lines_of

from cutbank.domain.cut_points import find_orphans
from cutbank.domain.messages import Message
from cutbank.domain.ranges import Ranges
from cutbank.domain.utilization import UsageLevel
from cutbank.projections.hook_payloads import context_pruned, context_warning, stats

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


@pytest.mark.claim("S1.2", "S1.3", "S1.15", "S1.18", "S1.19")
@FOLDERS
def test_vectors_sizes_scores_and_levels(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "qbit")):
        policy, expected = case.policy(), case.expected
        weighed = policy.weigh(case.window.items)
        level = policy.measure_level(case.window)

        assert ids_of(case, weighed.messages) == expected["message_block_ids"], case.name
        assert list(weighed.tokens) == expected["message_tokens"], case.name
        assert list(weighed.scores) == expected["scores"], case.name
        assert list(weighed.priorities) == expected["priorities"], case.name
        sizes = stats(weighed)
        assert sizes == {name: expected[name] for name in sizes}, case.name
        assert level.share == expected["utilization"], case.name
        assert level.level == expected["alert_level"], case.name
        assert policy.compute_target(level) == expected["target_tokens"], case.name
        assert policy.fires(case.window) is expected["trigger"], case.name


@FOLDERS
def test_vectors_what_would_be_pruned(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "qbit")):
        policy, expected = case.policy(), case.expected
        weighed, level = policy.weigh(case.window.items), policy.measure_level(case.window)
        stays = policy.choose_staying(weighed, level.tokens, policy.compute_target(level))
        everything = range(len(weighed.messages))

        assert sorted(stays) == expected["preview_kept"], case.name
        pruned = [index for index in everything if index not in stays]
        assert pruned == expected["preview_pruned"], case.name
        assert (level.tokens > policy.compute_target(level)) is expected["preview_needed"], (
            case.name
        )


@pytest.mark.claim("S1.23", "S1.24")
@FOLDERS
def test_vectors_what_is_pruned_and_told_of_it(folder: str) -> None:
    for case in map(case_of, lines_of(folder, "qbit")):
        policy, expected, window = case.policy(), case.expected, case.window
        plan = policy.plan(window)
        drops = plan.drops if plan else Ranges()
        gone = [item for item in window.items if item.position in drops]
        kept = Ranges.of(case.ids) - drops
        pruned = policy.describe_pruning(window, gone) if plan else None
        warning = policy.find_warning(window) if plan is None else None
        alone = find_orphans(window.items, kept)

        assert (plan is not None) is expected["acted"], case.name
        assert list(dict.fromkeys(case.ids[at] for at in kept)) == expected["kept_ids"], case.name
        assert list(dict.fromkeys(case.ids[at] for at in drops)) == expected["pruned_ids"], (
            case.name
        )
        warned = fields(context_warning(warning)) if warning else None
        assert warned == expected["warning"], case.name
        removed = fields(context_pruned(pruned)) if pruned else None
        assert removed == expected["pruned"], case.name
        told = [INTERNAL.get(policy.measure_level(window).level)]
        if pruned:
            told += [INTERNAL.get(pruned.after.level), "ContextPruned"]
        assert list(filter(None, told)) == expected["internal_events"], case.name
        assert sorted(alone.results) == expected["orphaned_tool_results"], case.name
        assert sorted(alone.calls) == expected["orphaned_tool_calls"], case.name


@pytest.mark.claim("S1.25")
@FOLDERS
def test_vectors_truncation_of_tool_results(folder: str) -> None:
    for vector in lines_of(folder, "qbit_truncation"):
        told = aggregated(vector["input"], vector["max_tokens"])

        assert told == vector["expected"], vector["input"][:60]

"""Writes a comparison of two views for `diff --json`."""

from typing import Any

from ....domain.compaction_events import CompactBoundary, Summary
from ....projections.lost_facts import LostFact
from ....projections.view_content import Coordinate
from ....projections.view_diff import DiffedBlock, ViewDiff
from .printing import list_handle_ranges

CompactionNumbers = tuple[int | None, ...]
"""The compactions that the old and the new view begin at; None for a view of all of the log."""


def diff_to_json(diff: ViewDiff, counts: CompactionNumbers) -> dict[str, Any]:
    """Return a comparison with all blocks and facts."""
    return {
        "session": diff.session,
        "namespace": diff.namespace,
        "before": _view_to_json(diff.before, diff.boundary_before, diff.tokens_before, counts[0]),
        "after": _view_to_json(diff.after, diff.boundary, diff.tokens, counts[1]),
        "tokens_basis": diff.sizes.basis,
        "left": [_block_to_json(block) for block in diff.removed],
        "came": [_block_to_json(block) for block in diff.added],
        "reshown": [
            {
                "handle": f"#{one.position}",
                "kind": one.kind,
                "tokens_before": one.tokens_before,
                "tokens": one.tokens,
            }
            for one in diff.changed
        ],
        "stands_for": list_handle_ranges(diff.summarized_blocks),
        "without_a_word": list_handle_ranges(diff.unmentioned_blocks),
        "summary": diff.summary and _summary_to_json(diff.summary),
        "summary_before": diff.summary_before and _summary_to_json(diff.summary_before),
        "request_changed": diff.is_request_changed,
        "lost": [_fact_to_json(fact) for fact in diff.lost_facts],
        "gained": [_fact_to_json(fact) for fact in diff.gained_facts],
    }


def _view_to_json(
    at: Coordinate, boundary: CompactBoundary | None, tokens: int, count: int | None
) -> dict[str, Any]:
    return {
        "lineage": at.lineage,
        "lineage_version": at.lineage_version,
        "at": at.position,
        "boundary": boundary.originator_version if boundary else None,
        "compaction": count,
        "tokens": tokens,
    }


def _block_to_json(block: DiffedBlock) -> dict[str, Any]:
    return {
        "handle": f"#{block.position}",
        "turn": block.turn,
        "kind": block.kind,
        "name": block.name,
        "tokens": block.tokens,
        "line": block.line,
    }


def _summary_to_json(summary: Summary) -> dict[str, Any]:
    return {
        "boundary": summary.boundary,
        "summariser": summary.summariser,
        "model": summary.model,
        "tokens": summary.tokens,
        "covers": list_handle_ranges(summary.covers),
        "text": summary.text,
        "sections": summary.sections,
        "digest": summary.digest.model_dump(mode="json"),
    }


def _fact_to_json(fact: LostFact) -> dict[str, Any]:
    return {
        "fact": fact.text,
        "key": fact.key,
        "kind": fact.kind,
        "handles": list_handle_ranges(fact.handles),
        "times": fact.block_count,
        "by_user": fact.by_user,
        "uses": fact.uses,
        "used_again": list_handle_ranges(fact.later_uses),
        "told_again": fact.repeated_at,
        "minor": fact.is_minor,
    }

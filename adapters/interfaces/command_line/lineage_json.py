"""Writes a lineage for `lineage --json`."""

from typing import Any

from ....domain.compaction_events import CompactionFailed
from ....projections.audit_entries import find_source_time
from ....projections.lineage_tree import (
    BoundaryNode,
    FailedCompaction,
    LineageTree,
    SummarizedBlocks,
)
from ....projections.read_models.timestamps import format_timestamp
from .printing import list_handle_ranges


def lineage_to_json(tree: LineageTree) -> dict[str, Any]:
    return {
        "lineage": tree.lineage,
        "continues": tree.continued_lineage,
        "lineage_version": tree.version,
        "served": tree.served or None,
        "boundaries": [
            _node_to_json(node, count) for count, node in enumerate(tree.nodes, start=1)
        ],
        "attempts": [_attempt_to_json(attempt) for attempt in tree.attempts],
        "stands": [_stand_to_json(stand) for stand in tree.list_summarized_blocks()],
    }


def _node_to_json(node: BoundaryNode, count: int) -> dict[str, Any]:
    boundary, summary = node.boundary, node.summary
    return {
        "boundary": node.number,
        "compaction": count,
        "previous": node.previous,
        "decided_in": node.lineage,
        "standing": node.status,
        "trigger": boundary.trigger,
        "policy": boundary.policy,
        "when": format_timestamp(find_source_time(boundary) or node.drawn_at),
        "pre_tokens": node.sizes.before,
        "post_tokens": node.sizes.after,
        "tokens_basis": node.sizes.basis,
        "after": boundary.after,
        "first_kept": boundary.first_kept,
        "new": list_handle_ranges(node.new_blocks),
        "inherited": list_handle_ranges(node.inherited_blocks),
        "hidden": list_handle_ranges(boundary.hidden),
        "pinned": list_handle_ranges(boundary.pinned),
        "trims": len(boundary.trims),
        "split_turn": boundary.split_turn.turn if boundary.split_turn else None,
        "served_from": node.served_from,
        "first_call": node.first_call,
        "summariser": summary.summariser if summary else None,
        "model": summary.model if summary else None,
        "cost_usd": summary.cost_usd if summary else None,
        "summary_tokens": summary.tokens if summary else None,
        "summary": summary.text if summary else None,
        "words": {str(number): phrases for number, phrases in node.word_origins.items()},
    }


def _attempt_to_json(attempt: FailedCompaction) -> dict[str, Any]:
    event = attempt.event
    failed = isinstance(event, CompactionFailed)
    return {
        "upon": attempt.based_on or None,
        "when": format_timestamp(event.timestamp),
        "outcome": "failed" if failed else "rejected",
        "reason": event.reason,
        "tried": list(event.tried) if isinstance(event, CompactionFailed) else [],
        "stood_in": event.stood_in if isinstance(event, CompactionFailed) else None,
    }


def _stand_to_json(stand: SummarizedBlocks) -> dict[str, Any]:
    return {
        "blocks": list_handle_ranges(stand.blocks),
        "left_with": stand.removed_by,
        "summary": stand.summary,
    }

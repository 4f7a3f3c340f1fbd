"""What `lineage --json` says of a lineage."""

from typing import Any

from ....domain.compaction_events import CompactionFailed
from ....projections.lineage_tree import Attempt, LineageTree, Node, Stand
from ....projections.read_models.moments import moment
from ...analysis.auditing.told_times import told_at
from .printing import runs


def as_json(tree: LineageTree) -> dict[str, Any]:
    """A lineage with all its boundaries."""
    return {
        "lineage": tree.lineage,
        "continues": tree.continues,
        "lineage_version": tree.version,
        "served": tree.served or None,
        "boundaries": [_node(node, count) for count, node in enumerate(tree.nodes, start=1)],
        "attempts": [_attempt(attempt) for attempt in tree.attempts],
        "stands": [_stand(stand) for stand in tree.stands()],
    }


def _node(node: Node, count: int) -> dict[str, Any]:
    boundary, summary = node.boundary, node.summary
    return {
        "boundary": node.number,
        "compaction": count,
        "previous": node.previous,
        "decided_in": node.lineage,
        "standing": node.standing,
        "trigger": boundary.trigger,
        "policy": boundary.policy,
        "when": moment(told_at(boundary) or node.when),
        "pre_tokens": node.sizes.before,
        "post_tokens": node.sizes.after,
        "tokens_basis": node.sizes.basis,
        "after": boundary.after,
        "first_kept": boundary.first_kept,
        "new": runs(node.new),
        "inherited": runs(node.inherited),
        "hidden": runs(boundary.hidden),
        "pinned": runs(boundary.pinned),
        "trims": len(boundary.trims),
        "split_turn": boundary.split_turn.turn if boundary.split_turn else None,
        "served_from": node.served_from,
        "first_call": node.first_call,
        "summariser": summary.summariser if summary else None,
        "model": summary.model if summary else None,
        "cost_usd": summary.cost_usd if summary else None,
        "summary_tokens": summary.tokens if summary else None,
        "summary": summary.text if summary else None,
        "words": {str(number): phrases for number, phrases in node.words.items()},
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    event = attempt.event
    failed = isinstance(event, CompactionFailed)
    return {
        "upon": attempt.upon or None,
        "when": moment(event.timestamp),
        "outcome": "failed" if failed else "rejected",
        "reason": event.reason,
        "tried": list(event.tried) if isinstance(event, CompactionFailed) else [],
        "stood_in": event.stood_in if isinstance(event, CompactionFailed) else None,
    }


def _stand(stand: Stand) -> dict[str, Any]:
    return {
        "blocks": runs(stand.blocks),
        "left_with": stand.left_with,
        "summary": stand.summary,
    }

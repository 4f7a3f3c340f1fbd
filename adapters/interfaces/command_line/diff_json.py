"""What `diff --json` says of two views."""

from typing import Any

from ....domain.compaction_events import CompactBoundary, Summary
from ....projections.diffing.lost_facts import LostFact
from ....projections.diffing.view_diff import Listed, ViewDiff
from ....projections.history_view import Coordinate
from .printing import runs

Counts = tuple[int | None, ...]
"""Which compaction the old view begins at, and which the new one; None where it is all there is."""


def as_json(diff: ViewDiff, counts: Counts) -> dict[str, Any]:
    """A comparison, all blocks and facts included."""
    return {
        "session": diff.session,
        "namespace": diff.namespace,
        "before": _view(diff.before, diff.boundary_before, diff.tokens_before, counts[0]),
        "after": _view(diff.after, diff.boundary, diff.tokens, counts[1]),
        "tokens_basis": diff.sizes.basis,
        "left": [_block(block) for block in diff.left],
        "came": [_block(block) for block in diff.came],
        "reshown": [
            {
                "handle": f"#{one.position}",
                "kind": one.kind,
                "tokens_before": one.tokens_before,
                "tokens": one.tokens,
            }
            for one in diff.reshown
        ],
        "stands_for": runs(diff.stands_for),
        "without_a_word": runs(diff.without_a_word),
        "summary": diff.summary and _summary(diff.summary),
        "summary_before": diff.summary_before and _summary(diff.summary_before),
        "request_changed": diff.request_changed,
        "lost": [_fact(fact) for fact in diff.lost],
        "gained": [_fact(fact) for fact in diff.gained],
    }


def _view(
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


def _block(block: Listed) -> dict[str, Any]:
    return {
        "handle": f"#{block.position}",
        "turn": block.turn,
        "kind": block.kind,
        "name": block.name,
        "tokens": block.tokens,
        "line": block.line,
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "boundary": summary.boundary,
        "summariser": summary.summariser,
        "model": summary.model,
        "tokens": summary.tokens,
        "covers": runs(summary.covers),
        "text": summary.text,
        "sections": summary.sections,
        "digest": summary.digest.model_dump(mode="json"),
    }


def _fact(fact: LostFact) -> dict[str, Any]:
    return {
        "fact": fact.text,
        "key": fact.key,
        "kind": fact.kind,
        "handles": runs(fact.handles),
        "times": fact.times,
        "by_user": fact.by_user,
        "uses": fact.uses,
        "used_again": runs(fact.used_again),
        "told_again": fact.told_again,
        "minor": fact.is_minor,
    }

"""What qbit tells its status bar of a pruning: three events, and its own record of the same."""

from enum import StrEnum
from typing import Any

from cutbank.domain.tool_result_size import TruncatedResult
from cutbank.domain.utilization import PruningResult, UsageLevel
from cutbank.projections.hook_payloads import (
    context_pruned,
    context_warning,
    stats,
    tool_response_truncated,
)

__all__ = [
    "InternalEvent",
    "aggregated",
    "context_pruned",
    "context_warning",
    "internal_events",
    "stats",
    "tool_response_truncated",
]


class InternalEvent(StrEnum):
    """What the original's context module tells the rest of it."""

    WARNING = "WarningThreshold"
    ALERT = "AlertThreshold"
    EXCEEDED = "ContextExceeded"
    PRUNED = "ContextPruned"


_OF_LEVEL = {
    UsageLevel.WARNING: InternalEvent.WARNING,
    UsageLevel.ALERT: InternalEvent.ALERT,
    UsageLevel.CRITICAL: InternalEvent.EXCEEDED,
}


def internal_events(level: UsageLevel, pruned: PruningResult | None) -> tuple[InternalEvent, ...]:
    """What is told of one look at the context: of each count, and of a pruning between them."""
    told = [_OF_LEVEL.get(level)]
    if pruned is not None:
        told += [_OF_LEVEL.get(pruned.after.level), InternalEvent.PRUNED]
    return tuple(event for event in told if event is not None)


def aggregated(result: TruncatedResult) -> dict[str, Any]:
    """A tool's answer as it is put into the conversation."""
    return {
        "truncated": result.was_truncated,
        "original_bytes": result.original_bytes,
        "result_bytes": result.result_bytes,
        "lines_removed": result.lines_removed,
        "tokens_saved": result.tokens_saved,
        "type": result.kind.value,
        "content": result.content,
    }

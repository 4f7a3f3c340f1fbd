"""What qbit tells its status bar of a pruning: three events, and its own record of the same."""

from enum import StrEnum
from typing import Any

from ...domain.policies.pruning.weighed import Weighed
from ...domain.tool_output import Shortened
from ...domain.utilisation import Level, Pruned, Utilisation


class InternalEvent(StrEnum):
    """What the original's context module tells the rest of it."""

    WARNING = "WarningThreshold"
    ALERT = "AlertThreshold"
    EXCEEDED = "ContextExceeded"
    PRUNED = "ContextPruned"


_OF_LEVEL = {
    Level.WARNING: InternalEvent.WARNING,
    Level.ALERT: InternalEvent.ALERT,
    Level.CRITICAL: InternalEvent.EXCEEDED,
}


def context_warning(utilisation: Utilisation) -> dict[str, Any]:
    """So much is in use that something will have to leave soon."""
    return {
        "type": "context_warning",
        "utilization": utilisation.share,
        "total_tokens": utilisation.tokens,
        "max_tokens": utilisation.limit,
    }


def context_pruned(pruned: Pruned, *, as_shipped: bool = False) -> dict[str, Any]:
    """Messages have left; the program as shipped does not say how many tokens that freed."""
    told = {
        "type": "context_pruned",
        "messages_removed": pruned.messages,
        "utilization_before": pruned.before.share,
        "utilization_after": pruned.after.share,
    }
    return told if as_shipped else {**told, "tokens_freed": pruned.tokens}


def tool_response_truncated(
    tool_name: str, original_tokens: int, truncated_tokens: int
) -> dict[str, Any]:
    """A tool's answer is shown shortened."""
    return {
        "type": "tool_response_truncated",
        "tool_name": tool_name,
        "original_tokens": original_tokens,
        "truncated_tokens": truncated_tokens,
    }


def internal_events(level: Level, pruned: Pruned | None) -> tuple[InternalEvent, ...]:
    """What is told of one look at the context: of each count, and of a pruning between them."""
    told = [_OF_LEVEL.get(level)]
    if pruned is not None:
        told += [_OF_LEVEL.get(pruned.after.level), InternalEvent.PRUNED]
    return tuple(event for event in told if event is not None)


def stats(weighed: Weighed) -> dict[str, int]:
    """Tokens by whose they are; a message that holds a tool result counts as one."""
    user, assistant, results = weighed.buckets
    return {
        "total_tokens": weighed.total,
        "user_tokens": user,
        "assistant_tokens": assistant,
        "tool_result_tokens": results,
    }


def aggregated(result: Shortened) -> dict[str, Any]:
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

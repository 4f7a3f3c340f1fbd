"""Builds the JSON for hooks and listeners, in the shapes of the Claude Agent SDK and qbit."""

from typing import Any
from uuid import UUID, uuid5

from ..domain.compaction_events import CompactBoundary, Trigger
from ..domain.policies.weighed_messages import WeighedMessages
from ..domain.utilization import PruningResult, Utilization


def said_trigger(trigger: Trigger | None) -> str:
    """Return `manual` if a user requested the compaction, else `auto`."""
    return "manual" if trigger is Trigger.MANUAL else "auto"


def compact_boundary(
    session: str, *, lineage: UUID, boundary: int, trigger: Trigger | None, pre_tokens: int
) -> dict[str, Any]:
    """Return the message for a boundary that begins to be served (SDKCompactBoundaryMessage)."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": said_trigger(trigger), "pre_tokens": pre_tokens},
        "uuid": str(uuid5(lineage, str(boundary))),
        "session_id": session,
    }


def of_boundary(session: str, boundary: CompactBoundary) -> dict[str, Any]:
    return compact_boundary(
        session,
        lineage=boundary.originator_id,
        boundary=boundary.originator_version,
        trigger=boundary.trigger,
        pre_tokens=boundary.pre_tokens,
    )


def pre_compact(
    session: str, trigger: Trigger | None, custom_instructions: str | None
) -> dict[str, Any]:
    """Return a hook's input before a summary is written (PreCompactHookInput)."""
    return {
        "session_id": session,
        "hook_event_name": "PreCompact",
        "trigger": said_trigger(trigger),
        "custom_instructions": custom_instructions,
    }


def session_start(session: str) -> dict[str, Any]:
    """Return a hook's input when the session goes on (SessionStartHookInput)."""
    return {"session_id": session, "hook_event_name": "SessionStart", "source": "compact"}


def context_warning(utilization: Utilization) -> dict[str, Any]:
    """Return the message that something will have to leave soon."""
    return {
        "type": "context_warning",
        "utilization": utilization.share,
        "total_tokens": utilization.tokens,
        "max_tokens": utilization.limit,
    }


def context_pruned(pruned: PruningResult, *, as_shipped: bool = False) -> dict[str, Any]:
    """Return the message that messages have left; as shipped, it omits the freed tokens."""
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
    """Return the message that a tool's answer is shown shortened."""
    return {
        "type": "tool_response_truncated",
        "tool_name": tool_name,
        "original_tokens": original_tokens,
        "truncated_tokens": truncated_tokens,
    }


def stats(weighed: WeighedMessages) -> dict[str, int]:
    """Return tokens by author; a message that holds a tool result counts as a result."""
    user, assistant, results = weighed.buckets
    return {
        "total_tokens": weighed.total,
        "user_tokens": user,
        "assistant_tokens": assistant,
        "tool_result_tokens": results,
    }

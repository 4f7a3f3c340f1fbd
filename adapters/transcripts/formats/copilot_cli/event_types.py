"""Lists the event types of Copilot CLI sessions, and the treatment of each."""

from ..reading.fields import JsonDict

FORMAT_NAME = "copilot-cli"

_FOR_THE_PERSON = "shown to the person only"
_STREAMED = "passes by while an answer is written: the whole of it comes as an event of its own"
_HOOK = "what hooks did"
_PERMISSION = "a permission that was asked for, and its answer"

SKIPPED_EVENT_TYPES = {
    "hook.start": _HOOK,
    "hook.end": _HOOK,
    "permission.requested": _PERMISSION,
    "permission.completed": _PERMISSION,
    **dict.fromkeys(
        (
            *("session.error", "session.idle", "session.info", "session.usage_info"),
            *("session.warning", "pending_messages.modified", "session.background_tasks_changed"),
        ),
        _FOR_THE_PERSON,
    ),
    **dict.fromkeys(
        (
            *("assistant.message_delta", "assistant.reasoning_delta", "assistant.intent"),
            *("assistant.reasoning", "assistant.streaming_delta", "assistant.message_start"),
            *("tool.execution_partial_result", "tool.execution_progress"),
        ),
        _STREAMED,
    ),
}
"""Types of events that Copilot does not need to resume, and the reasons."""

KEPT_EVENT_TYPES = {
    *("session.start", "session.resume", "session.model_change", "session.mode_changed"),
    *("session.context_changed", "session.plan_changed", "session.usage_checkpoint"),
    *("session.title_changed", "session.handoff", "session.shutdown", "session.task_complete"),
    *("session.workspace_file_changed", "session.compaction_start", "session.truncation"),
    *("session.compaction_complete", "session.snapshot_rewind", "session.skills_loaded"),
    *("session.tools_updated", "session.custom_agents_updated", "session.mcp_servers_loaded"),
    *("session.permissions_changed", "session.remote_steerable_changed"),
    *("assistant.turn_start", "assistant.turn_end", "assistant.usage", "abort"),
    *("tool.execution_start", "tool.user_requested", "skill.invoked"),
    *("subagent.started", "subagent.completed", "subagent.failed", "subagent.selected"),
    *("subagent.deselected", "system.message", "system.notification"),
}
"""Types of events that no model was sent, and that are kept unchanged."""


def is_from_sub_agent(event: JsonDict, data: JsonDict) -> bool:
    """Return whether a sub-agent wrote it: sub-agents share the session's file."""
    return isinstance(data.get("parentToolCallId"), str) or isinstance(event.get("agentId"), str)

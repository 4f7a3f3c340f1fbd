"""Converts the events of a Copilot CLI session to blocks."""

from collections.abc import Mapping

from .....domain.blocks import Block, BlockKind, Media, ToolCall
from .....domain.session_events import Usage
from ..content import ContentPart, media_kind_of, require_base64
from ..entry_steps import EntrySteps
from ..fields import (
    JsonDict,
    MalformedError,
    find_text,
    get_field,
    require_field,
    require_object,
)

_DISPLAYED = (
    *("session.error", "session.idle", "session.info", "session.usage_info", "session.warning"),
    *("pending_messages.modified", "session.background_tasks_changed"),
)
_STREAMED = (
    *("assistant.message_delta", "assistant.reasoning_delta", "assistant.intent"),
    *("assistant.reasoning", "assistant.streaming_delta", "assistant.message_start"),
    *("tool.execution_partial_result", "tool.execution_progress"),
)
SKIPPED_EVENT_TYPES = {
    **dict.fromkeys(("hook.start", "hook.end"), "what hooks did"),
    **dict.fromkeys(
        ("permission.requested", "permission.completed"),
        "a permission that was asked for, and its answer",
    ),
    **dict.fromkeys(_DISPLAYED, "shown to the person only"),
    **dict.fromkeys(
        _STREAMED,
        "passes by while an answer is written: the whole of it comes as an event of its own",
    ),
}
"""Types of events without content of their own, each with the reason."""

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


def read_user_message(entry: EntrySteps, data: JsonDict, *, by_harness: bool) -> None:
    """Read a user message; the model got its `transformedContent`."""
    said = get_field(data, "content", str, "data.") or ""
    sent = get_field(data, "transformedContent", str, "data.")
    entry.add_text(BlockKind.DEVELOPER if by_harness else BlockKind.USER, sent or said)
    for file in get_field(data, "attachments", list, "data.") or []:
        match file:  # only a blob holds its bytes; others are not in the file
            case {"type": "blob", "data": str(encoded), "mimeType": str(mime)}:
                media = Media(
                    type=media_kind_of(mime),
                    mime=mime,
                    data=require_base64(encoded, "data: "),
                    name=find_text(file, "displayName"),
                )
                entry.blocks.append(Block(kind=BlockKind(media.type), media=media, name=media.name))


def read_assistant_message(
    entry: EntrySteps, data: JsonDict, calls: Mapping[str, str]
) -> dict[str, str]:
    """Read a model's message; return its calls' source ids with their unique ids.

    `calls` are the open calls.
    """
    opened: dict[str, str] = {}
    entry.add_text(BlockKind.THINKING, get_field(data, "reasoningText", str, "data.") or "")
    entry.add_text(BlockKind.ASSISTANT, get_field(data, "content", str, "data.") or "")
    for index, item in enumerate(get_field(data, "toolRequests", list, "data.") or []):
        within = f"data.toolRequests[{index}]"
        request = require_object(item, f"{within}: ")
        id = require_field(request, "toolCallId", str, f"{within}.")
        name = require_field(request, "name", str, f"{within}.")
        if not id:
            raise MalformedError(f"{within}.toolCallId: expected an id, but it is empty")
        told = request.get("arguments", {})
        arguments = told if isinstance(told, str) else entry.line.to_json(told)
        opened[id] = f"{id}#{entry.key}/{index}" if id in calls or id in opened else id
        entry.blocks.append(ToolCall(tool_call_id=opened[id], name=name, arguments=arguments))
    return opened


def read_tool_result(entry: EntrySteps, data: JsonDict, call: str) -> None:
    """Read a tool's answer: the model got `result.content`, or the error's message."""
    failed = require_field(data, "success", bool, "data.") is False
    result = get_field(data, "result", dict, "data.")
    name, field = ("result", "content") if result else ("error", "message")
    owner = result or data.get("error")
    text = get_field(owner, field, str, f"data.{name}.") if isinstance(owner, dict) else None
    parts: list[ContentPart] = [text or ""]
    for item in get_field(result or {}, "contents", list, "data.") or []:
        match item:
            case {"type": "image", "data": str(encoded), "mimeType": str(mime)}:
                image = require_base64(encoded, "data: ")
                parts.append(Media(type="image", mime=mime, data=image))
    entry.add_tool_result(call, parts, is_error=failed)


def read_copilot_usage(data: JsonDict) -> Usage:
    """Return the usage of a call, usually only its output."""
    read, cached, wrote, output, reasoning = (
        get_field(data, f"{name}Tokens", int, "data.")
        for name in ("input", "cacheRead", "cacheWrite", "output", "reasoning")
    )
    return Usage(
        input=None if read is None else max(0, read - (cached or 0) - (wrote or 0)),
        cache_read=cached,
        cache_write=wrote,
        output=output,
        reasoning=reasoning,
    )

"""Converts the events of a Copilot CLI session to blocks."""

from collections.abc import Mapping
from typing import Any

from .....domain.blocks import Block, Kind, Media, Text, ToolCall, ToolResult
from .....domain.session_events import Usage
from .. import media_text
from ..entry_steps import EntryBlocks, EntryLocation
from ..fields import JsonDict, MalformedError, get_field, require_field
from ..placeholders import Placeholder

FORMAT_NAME = "copilot-cli"

_FOR_THE_PERSON = "shown to the person only"
_STREAMED = "passes by while an answer is written: the whole of it comes as an event of its own"
_HOOK = "what hooks did"
_PERMISSION = "a permission that was asked for, and its answer"

SKIPPED_EVENT_TYPES = {
    name: reason
    for reason, names in {
        _HOOK: """
            hook.start hook.end
        """,
        _PERMISSION: """
            permission.requested permission.completed
        """,
        _FOR_THE_PERSON: """
            session.error session.idle session.info session.usage_info session.warning
            pending_messages.modified session.background_tasks_changed
        """,
        _STREAMED: """
            assistant.message_delta assistant.reasoning_delta assistant.intent assistant.reasoning
            assistant.streaming_delta assistant.message_start tool.execution_partial_result
            tool.execution_progress
        """,
    }.items()
    for name in names.split()
}

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


def read_user_message(pieces: EntryBlocks, data: JsonDict, *, by_harness: bool) -> None:
    """Read a user message; the model got its `transformedContent`."""
    said = get_field(data, "content", str, "data.") or ""
    sent = get_field(data, "transformedContent", str, "data.")
    text = sent or said
    if text:
        kind = Kind.DEVELOPER if by_harness else Kind.USER
        block = pieces.add(Block(kind=kind, text=text))
        if sent:
            pieces.placeholders.append(
                Placeholder(("data", "transformedContent"), block_index=block)
            )
        if said and (at := text.find(said)) >= 0:
            span = (at, at + len(said))
            pieces.placeholders.append(
                Placeholder(("data", "content"), block_index=block, span=span)
            )
    for index, file in enumerate(get_field(data, "attachments", list, "data.") or []):
        media, field = _read_attachment(file)
        if media is None:
            continue
        block = pieces.add(Block(kind=Kind(media.type), media=media, name=media.name))
        if media_text.is_base64_of(media, file[field]):
            at_file = ("data", "attachments", index, field)
            pieces.placeholders.append(Placeholder(at_file, "base64", block_index=block))


def read_assistant_message(
    pieces: EntryBlocks, whence: EntryLocation, data: JsonDict, calls: Mapping[str, str]
) -> dict[str, str]:
    """Read a model's message; return its calls' source ids with their unique ids.

    `calls` are the open calls.
    """
    opened: dict[str, str] = {}
    thought = get_field(data, "reasoningText", str, "data.")
    if thought:
        pieces.add(Block.thinking(thought), ("data", "reasoningText"))
    if text := get_field(data, "content", str, "data."):
        pieces.add(Block.assistant(text), ("data", "content"))
    for index, request in enumerate(get_field(data, "toolRequests", list, "data.") or []):
        within = f"data.toolRequests[{index}]"
        if not isinstance(request, dict):
            raise MalformedError(f"{within}: expected an object")
        id = require_field(request, "toolCallId", str, f"{within}.")
        name = require_field(request, "name", str, f"{within}.")
        if not id:
            raise MalformedError(f"{within}.toolCallId: expected an id, but it is empty")
        arguments = request.get("arguments", {})
        as_text = isinstance(arguments, str)
        known = f"{id}#{whence.key}/{index}" if id in calls or id in opened else id
        told = arguments if as_text else whence.line.to_json(arguments)
        block = pieces.add(ToolCall(tool_call_id=known, name=name, arguments=told))
        opened[id] = known
        if "arguments" in request:
            at = ("data", "toolRequests", index, "arguments")
            pieces.placeholders.append(
                Placeholder(at, "text" if as_text else "json", block_index=block)
            )
    return opened


def read_tool_result(pieces: EntryBlocks, data: JsonDict, call: str) -> None:
    """Read a tool's answer: the model got `result.content`, or the error's message."""
    failed = require_field(data, "success", bool, "data.") is False
    result = get_field(data, "result", dict, "data.")
    owner, field = (result, "content") if result else (data.get("error"), "message")
    name = "result" if result else "error"
    text = get_field(owner, field, str, f"data.{name}.") if isinstance(owner, dict) else None
    parts: list[Text | Media] = [Text(text=text or "")]
    images: list[tuple[int, Media]] = []
    for index, item in enumerate(get_field(result or {}, "contents", list, "data.") or []):
        match item:
            case {"type": "image", "data": str(data64), "mimeType": str(mime)}:
                images.append(
                    (
                        index,
                        Media(
                            type="image",
                            mime=mime,
                            data=media_text.require_base64(data64, "data: "),
                        ),
                    )
                )
    whole = (*parts, *(media for _, media in images))
    said = whole if images else text or ""
    block = pieces.add(ToolResult(tool_call_id=call, content=said, is_error=failed))
    if text is not None:
        pieces.placeholders.append(Placeholder(("data", name, field), part=0, block_index=block))
    if result and result.get("detailedContent") == text is not None:
        again = ("data", name, "detailedContent")
        pieces.placeholders.append(Placeholder(again, part=0, block_index=block))
    for place, (index, media) in enumerate(images, 1):
        if result and media_text.is_base64_of(media, result["contents"][index]["data"]):
            at = ("data", name, "contents", index, "data")
            pieces.placeholders.append(Placeholder(at, "base64", place, block))


def read_copilot_usage(data: JsonDict) -> Usage:
    """Return the usage of a call, usually only its output."""
    counts = {
        ours: get_field(data, theirs, int, "data.")
        for ours, theirs in (
            ("cache_read", "cacheReadTokens"),
            ("cache_write", "cacheWriteTokens"),
            ("output", "outputTokens"),
            ("reasoning", "reasoningTokens"),
        )
    }
    read = get_field(data, "inputTokens", int, "data.")
    if read is not None:
        cached = (counts["cache_read"] or 0) + (counts["cache_write"] or 0)
        counts["input"] = max(0, read - cached)
    return Usage(**counts)


def _read_attachment(file: Any) -> tuple[Media | None, str]:
    """Return the bytes of an attachment if it holds them; others are not in the file."""
    match file:
        case {"type": "blob", "data": str(data), "mimeType": str(mime)}:
            name = file.get("displayName")
            named = name if isinstance(name, str) else None
            return Media(
                type=media_text.media_kind_of(mime),
                mime=mime,
                data=media_text.require_base64(data, "data: "),
                name=named,
            ), "data"
        case _:
            return None, ""

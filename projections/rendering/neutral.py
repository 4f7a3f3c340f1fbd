"""Renders a view as provider-independent JSON, without reordering or omitting anything."""

from ...domain.blocks import Block, BlockKind, Media, Native, NativePart, ResultPart, Text, ToolCall
from ...domain.compaction_events import Summary
from ...domain.ranges import Ranges
from ..view_content import ViewContent, ViewEntry
from . import sendable
from .sendable import JsonObject

MESSAGE_ROLES = {
    BlockKind.ASSISTANT: "assistant",
    BlockKind.THINKING: "assistant",
    BlockKind.TOOL_CALL: "assistant",
    BlockKind.TOOL_RESULT: "tool",
    BlockKind.DEVELOPER: "developer",
}
"""The role of each kind; any other kind is the user's."""


def render(view: ViewContent) -> JsonObject:
    """Return the view as JSON, the summary first, sharing nothing with the view.

    Other programs depend on these names: never rename or drop a field that was always there.
    """
    at = view.coordinate
    return {
        "session": view.session,
        "namespace": view.namespace,
        "coordinate": {
            "position": at.position,
            "lineage": at.lineage,
            "lineage_version": at.lineage_version,
        },
        "fingerprint": view.fingerprint,
        "tokens": view.tokens,
        "boundary": view.boundary.originator_version if view.boundary else None,
        "system_prompt": view.system_prompt
        and sendable.replace_half_characters(view.system_prompt),
        "tools": sendable.copy_value(view.tool_definitions),
        "settings": sendable.copy_value(view.request_settings),
        "messages": _render_messages(view),
    }


def _render_messages(view: ViewContent) -> list[JsonObject]:
    replaced = {r.position for r in view.boundary.replacements} if view.boundary else set()
    answered = {entry.call for entry in view.entries}
    hidden = view.boundary.hidden if view.boundary else Ranges()
    messages = [_render_summary(view.summary, hidden)] if view.summary else []
    for entry in view.entries:
        message = _render_message(entry)
        if entry.shown is not None:
            message["shown"] = "replaced" if entry.position in replaced else "trimmed"
        if isinstance(entry.block, ToolCall) and entry.position not in answered:
            message["open"] = True
        messages.append(message)
    return messages


def _render_summary(summary: Summary, hidden: Ranges) -> JsonObject:
    return {
        "role": "user",
        "kind": "summary",
        "boundary": summary.boundary,
        "covers": str(summary.covers),
        "hidden": str(hidden),
        "text": sendable.replace_half_characters(summary.text),
    }


def _render_message(entry: ViewEntry) -> JsonObject:
    block = entry.block
    message: JsonObject = {
        "position": entry.position,
        "handle": f"#{entry.position}",
        "role": MESSAGE_ROLES.get(block.kind, "user"),
        "kind": block.kind.value,
        "turn": entry.turn,
        "text": sendable.replace_half_characters(entry.text),
    }
    if block.message_id is not None:
        message["message_id"] = block.message_id
    if entry.is_pinned:
        message["pinned"] = True
    if not isinstance(block, Block):
        message["tool_call_id"] = sendable.replace_half_characters(block.tool_call_id)
    if isinstance(block, Block):
        if block.name is not None:
            message["name"] = sendable.replace_half_characters(block.name)
    elif isinstance(block, ToolCall):
        message["name"] = sendable.replace_half_characters(block.name)
        if entry.shown is None:
            message["arguments"], message["text"] = message["text"], ""
    else:
        message["call"] = entry.call
        message["is_error"] = block.is_error
    if entry.shown is None:
        if parts := _render_parts(entry):
            message["parts"] = parts
        if block.native:
            message["native"] = _render_native(block.native)
    return message


def _render_parts(entry: ViewEntry) -> list[JsonObject]:
    """Return what a text cannot hold; for a result, all of its parts, including texts."""
    block = entry.block
    if isinstance(block, Block):
        return [_render_part(block.media)] if block.media else []
    if isinstance(block, ToolCall) or isinstance(block.content, str):
        return []
    return [_render_part(part) for part in block.content]


def _render_part(part: ResultPart) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": sendable.replace_half_characters(part.text)}
    if isinstance(part, NativePart):
        return {"type": "native", **_render_native(part.native)}
    return _render_media(part)


def _render_media(found: Media) -> JsonObject:
    part: JsonObject = {"type": found.type, "mime": found.mime, "bytes": len(found.data)}
    if found.data:
        part["data"] = sendable.encode_base64(found)
    if found.url is not None:
        part["url"] = found.url
    if found.name is not None:
        part["name"] = found.name
    return part


def _render_native(native: Native) -> JsonObject:
    return {"provider": native.provider, "item": sendable.replace_half_characters(native.item)}

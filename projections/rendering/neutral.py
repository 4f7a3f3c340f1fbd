"""A view as plain JSON for people and programs: no provider's form, nothing moved or left out."""

from ...domain.blocks import Block, Kind, Media, Native, NativePart, Part, Text, ToolCall
from ...domain.compaction_events import Summary
from ...domain.ranges import Ranges
from ..history_view import Entry, HistoryView
from . import media, sendable
from .sendable import JsonObject

ROLES = {
    Kind.ASSISTANT: "assistant",
    Kind.THINKING: "assistant",
    Kind.TOOL_CALL: "assistant",
    Kind.TOOL_RESULT: "tool",
    Kind.DEVELOPER: "developer",
}
"""Who speaks; whatever is not here, the user does."""


def render(view: HistoryView) -> JsonObject:
    """The view and its messages in the log's order, the summary first; it shares nothing with it.

    Others build on these names: none is changed, and none is left out that was always there.
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
        "system_prompt": view.system_prompt and sendable.text(view.system_prompt),
        "tools": sendable.own(view.tool_definitions),
        "settings": sendable.own(view.request_settings),
        "messages": _messages(view),
    }


def _messages(view: HistoryView) -> list[JsonObject]:
    replaced = {r.position for r in view.boundary.replacements} if view.boundary else set()
    answered = {entry.call for entry in view.entries}
    hidden = view.boundary.hidden if view.boundary else Ranges()
    messages = [_summary(view.summary, hidden)] if view.summary else []
    for entry in view.entries:
        message = _message(entry)
        if entry.shown is not None:
            message["shown"] = "replaced" if entry.position in replaced else "trimmed"
        if isinstance(entry.block, ToolCall) and entry.position not in answered:
            message["open"] = True
        messages.append(message)
    return messages


def _summary(summary: Summary, hidden: Ranges) -> JsonObject:
    return {
        "role": "user",
        "kind": "summary",
        "boundary": summary.boundary,
        "covers": str(summary.covers),
        "hidden": str(hidden),
        "text": sendable.text(summary.text),
    }


def _message(entry: Entry) -> JsonObject:
    block = entry.block
    message: JsonObject = {
        "position": entry.position,
        "handle": f"#{entry.position}",
        "role": ROLES.get(block.kind, "user"),
        "kind": block.kind.value,
        "turn": entry.turn,
        "text": sendable.text(entry.text),
    }
    if block.message_id is not None:
        message["message_id"] = block.message_id
    if entry.is_pinned:
        message["pinned"] = True
    if not isinstance(block, Block):
        message["tool_call_id"] = sendable.text(block.tool_call_id)
    if isinstance(block, Block):
        if block.name is not None:
            message["name"] = sendable.text(block.name)
    elif isinstance(block, ToolCall):
        message["name"] = sendable.text(block.name)
        if entry.shown is None:
            message["arguments"], message["text"] = message["text"], ""
    else:
        message["call"] = entry.call
        message["is_error"] = block.is_error
    if entry.shown is None:
        if parts := _parts(entry):
            message["parts"] = parts
        if block.native:
            message["native"] = _native(block.native)
    return message


def _parts(entry: Entry) -> list[JsonObject]:
    """What a text cannot hold; a result's parts all stand here, its texts included."""
    block = entry.block
    if isinstance(block, Block):
        return [_part(block.media)] if block.media else []
    if isinstance(block, ToolCall) or isinstance(block.content, str):
        return []
    return [_part(part) for part in block.content]


def _part(part: Part) -> JsonObject:
    if isinstance(part, Text):
        return {"type": "text", "text": sendable.text(part.text)}
    if isinstance(part, NativePart):
        return {"type": "native", **_native(part.native)}
    return _medium(part)


def _medium(found: Media) -> JsonObject:
    part: JsonObject = {"type": found.type, "mime": found.mime, "bytes": len(found.data)}
    if found.data:
        part["data"] = media.base64(found)
    if found.url is not None:
        part["url"] = found.url
    if found.name is not None:
        part["name"] = found.name
    return part


def _native(native: Native) -> JsonObject:
    return {"provider": native.provider, "item": sendable.text(native.item)}

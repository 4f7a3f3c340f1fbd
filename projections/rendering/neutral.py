"""Renders a view for no provider: as JSON in its own order, or as the items of a framework."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ...domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
)
from ...domain.compaction_events import Summary
from ...domain.item import MessageRuns
from ...domain.native_item import fill_item
from ...domain.ranges import Ranges
from ..rendering import sendable
from ..view_content import ViewContent, ViewEntry
from .sendable import JsonObject
from .summary_message import render_summary

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


@dataclass(frozen=True, slots=True)
class ViewItem:
    """What a view sends as one item: the summary, an item as it was given, or one block."""

    role: str
    """`user`, `assistant`, `tool` or `developer`, by its last block."""
    text: str
    """The text of its last block as the view shows it; the whole marked text of a summary."""
    json: JsonValue = None
    """The item as it was given; the shortened text stands in the place of a longer one. None for
    the summary, for a block that was given without an item, and where the text that replaces a
    block cannot stand in its item."""
    entries: tuple[ViewEntry, ...] = ()
    """Its blocks; none for the summary."""

    @property
    def block(self) -> AnyBlock | None:
        """Its first block; None for the summary."""
        return self.entries[0].block if self.entries else None

    @property
    def is_shortened(self) -> bool:
        """Whether the view shows less of a block than was appended, or another text."""
        return any(entry.shown is not None for entry in self.entries)


def list_items(view: ViewContent, provider: str = "") -> list[ViewItem]:
    """Return what the view sends as the items of `provider`, in order, the summary first.

    A late tool result comes directly after the message of its call.
    """
    items = [ViewItem("user", render_summary(view))] if view.summary else []
    entries = _order_entries(view.entries)
    by_position = {entry.position: entry for entry in entries}
    whole = {
        entry.position: item
        for entry in entries
        if entry.item and entry.item.provider == provider
        if (item := _make_item(entry, by_position))
    }
    pieces = {piece.position for item in whole.values() for piece in item.entries}
    for entry in entries:
        if entry.position in whole:
            items.append(whole[entry.position])
        elif entry.position not in pieces:
            items.append(_make_view_item(entry))
    return items


def _order_entries(entries: Sequence[ViewEntry]) -> list[ViewEntry]:
    runs = MessageRuns()
    run_of = {one.position: runs.add(one.position, one.block, one.call) for one in entries}
    return sorted(entries, key=lambda entry: run_of[entry.position])


def _make_item(last: ViewEntry, by_position: Mapping[int, ViewEntry]) -> ViewItem | None:
    """Return the item that ends with this block; None if not all of it can be shown there."""
    item = last.item
    if item is None or not all(piece in by_position for piece in item.pieces):
        return None
    entries = (*(by_position[piece] for piece in item.pieces), last)
    shown = {at: one.shown for at, one in enumerate(entries) if one.shown is not None}
    text = fill_item(item, [entry.block for entry in entries], shown)
    return None if text is None else _make_view_item(last, json.loads(text), entries)


def _make_view_item(
    entry: ViewEntry, item: JsonValue = None, entries: tuple[ViewEntry, ...] = ()
) -> ViewItem:
    role = MESSAGE_ROLES.get(entry.block.kind, "user")
    return ViewItem(role, entry.text, item, entries or (entry,))

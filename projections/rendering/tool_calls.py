"""How a tool call and its answer are spelled, so that every provider takes them."""

import json
import re
from collections.abc import Collection

from ...domain.blocks import Media, NativePart, ResultPart, ToolResult
from ..view_entry import ViewEntry
from . import sendable_json
from .sendable_json import JsonObject

NO_RESULT_TEXT = "[no result yet]"
"""Stands where the result of an open call will be: no provider takes a call without one."""
NO_OUTPUT_TEXT = "[no output]"
"""Stands for a result that says nothing: some providers refuse an empty one."""

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def make_distinct_id(call_id: str, position: int, taken: Collection[str], longest: int) -> str:
    """The call's own id where it will do; else one made of it and the call's position.

    It depends on what precedes the call alone, so that a growing view never renames one.
    """
    if len(call_id) <= longest and _ID.fullmatch(call_id) and call_id not in taken:
        return call_id
    mark = f"_{position}"
    while True:
        made = _NOT_IN_NAMES.sub("_", call_id)[: longest - len(mark)] + mark
        if made not in taken:
            return made
        mark += "_"


def sanitize_tool_name(name: str, longest: int) -> str:
    """A tool's name in the letters that providers accept."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "unnamed"


def render_arguments(entry: ViewEntry) -> JsonObject:
    """What the model asked for; a hidden call says what is shown in its place."""
    if entry.shown is not None:
        return {"hidden": sendable_json.replace_half_characters(entry.shown)}
    asked = _parse_object(entry.block.text)
    return (
        {"_raw": sendable_json.replace_half_characters(entry.block.text)}
        if asked is None
        else asked
    )


def render_arguments_text(entry: ViewEntry) -> str:
    """The arguments as JSON text: the model's own, byte for byte, where they are an object."""
    if entry.shown is None and _parse_object(entry.block.text) is not None:
        return sendable_json.replace_half_characters(entry.block.text)
    return json.dumps(render_arguments(entry), ensure_ascii=False)


def _parse_object(words: str) -> JsonObject | None:
    try:
        value = sendable_json.parse_sendable_json(words)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def list_answer_parts(result: ViewEntry | None, provider: str) -> list[str | Media | JsonObject]:
    """What answers a call, in order: texts, media and the provider's own parts; never nothing.

    A trimmed or hidden result is its text alone.
    """
    if result is None:
        return [NO_RESULT_TEXT]
    said = [_make_sendable(part, provider) for part in _list_parts(result)]
    return [part for part in said if part is not None] or [NO_OUTPUT_TEXT]


def _list_parts(result: ViewEntry) -> tuple[ResultPart | str, ...]:
    content = result.block.content if isinstance(result.block, ToolResult) else ""
    return (result.text,) if result.shown is not None or isinstance(content, str) else content


def _make_sendable(part: ResultPart | str, provider: str) -> str | Media | JsonObject | None:
    if isinstance(part, Media):
        return part
    if isinstance(part, NativePart):
        return sendable_json.parse_native_item(part.native, provider)
    words = part if isinstance(part, str) else part.text
    return sendable_json.replace_half_characters(words) if words.strip() else None

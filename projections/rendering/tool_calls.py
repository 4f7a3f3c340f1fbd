"""Renders tools, their calls and their answers in a form that every provider accepts."""

import json
import re
from collections.abc import Callable, Collection
from typing import Any

from ...domain.blocks import Media, NativePart, ResultPart, ToolResult
from ..view_content import ViewContent, ViewEntry
from . import sendable
from .sendable import JsonObject, copy_value

NO_RESULT_TEXT = "[no result yet]"
"""The result of an open call, because no provider accepts a call without one."""
NO_OUTPUT_TEXT = "[no output]"
"""The text of an empty result, because some providers refuse one."""

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def make_distinct_id(call_id: str, position: int, taken: Collection[str], longest: int) -> str:
    """Return the call's own id if it is acceptable, else one made from it and the call's position.

    It depends only on earlier calls, so that a growing view never changes an id.
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
    """Return a tool's name in the characters that providers accept."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "unnamed"


def render_arguments(entry: ViewEntry) -> JsonObject:
    """Return the call's arguments; for a hidden call, the text shown in its place."""
    if entry.shown is not None:
        return {"hidden": sendable.replace_half_characters(entry.shown)}
    asked = _parse_object(entry.block.text)
    return {"_raw": sendable.replace_half_characters(entry.block.text)} if asked is None else asked


def render_arguments_text(entry: ViewEntry) -> str:
    """Return the arguments as JSON text: the model's own, byte for byte, if they are an object."""
    if entry.shown is None and _parse_object(entry.block.text) is not None:
        return sendable.replace_half_characters(entry.block.text)
    return json.dumps(render_arguments(entry), ensure_ascii=False)


def _parse_object(words: str) -> JsonObject | None:
    try:
        value = sendable.parse_sendable_json(words)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def list_answer_parts(result: ViewEntry | None, provider: str) -> list[str | Media | JsonObject]:
    """Return a call's answer as texts, media and the provider's own parts, at least one.

    A trimmed or hidden result is only its text.
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
        return sendable.parse_native_item(part.native, provider)
    words = part if isinstance(part, str) else part.text
    return sendable.replace_half_characters(words) if words.strip() else None


def render_definitions(view: ViewContent, tool_format: str) -> list[Any]:
    """Return the tools in a provider's format; one in the same or an unknown format stays."""
    return [_render_definition(copy_value(tool), tool_format) for tool in view.tool_definitions]


def _render_definition(tool: Any, tool_format: str) -> Any:
    match tool:
        case {"name": str(name), "input_schema": schema}:
            recorded, definition = "anthropic", (name, tool.get("description"), schema)
        case {"type": "function", "function": {"name": str(name)} as function}:
            recorded = "openai-chat"
            definition = (name, function.get("description"), function.get("parameters"))
        case {"type": "function", "name": str(name)}:
            recorded = "openai-responses"
            definition = (name, tool.get("description"), tool.get("parameters"))
        case {"name": str(name), "inputSchema": schema}:
            recorded, definition = "mcp", (name, tool.get("description"), schema)
        case _:
            return tool
    return tool if recorded == tool_format else _DEFINITION_WRITERS[tool_format](*definition)


def _write_anthropic(name: str, description: Any, schema: Any) -> JsonObject:
    return _drop_missing(
        name=sanitize_tool_name(name, 128),
        description=description,
        input_schema=schema or {"type": "object", "properties": {}},
    )


def _write_openai_chat(name: str, description: Any, schema: Any) -> JsonObject:
    function = _drop_missing(
        name=sanitize_tool_name(name, 64), description=description, parameters=schema
    )
    return {"type": "function", "function": function}


def _write_openai_responses(name: str, description: Any, schema: Any) -> JsonObject:
    return _drop_missing(
        type="function",
        name=sanitize_tool_name(name, 64),
        description=description,
        parameters=schema or {"type": "object", "properties": {}},
        strict=False,  # the API's default, strict, may not suit another provider's schema
    )


def _drop_missing(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


_DEFINITION_WRITERS: dict[str, Callable[[str, Any, Any], JsonObject]] = {
    "anthropic": _write_anthropic,
    "openai-chat": _write_openai_chat,
    "openai-responses": _write_openai_responses,
}

"""Renders the tools in a provider's format, whichever format was recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..view_content import ViewContent
from .sendable_json import JsonObject, copy_value
from .tool_calls import sanitize_tool_name


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What all formats have in common."""

    name: str
    description: str | None
    schema: Any


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """One provider's format of a tool."""

    name: str
    write: Callable[[ToolDefinition], JsonObject]


def render_definitions(view: ViewContent, tool_format: ToolFormat) -> list[Any]:
    """Return the tools in a format; one in the same or an unknown format stays as it is."""
    return [_render_definition(copy_value(tool), tool_format) for tool in view.tool_definitions]


def _render_definition(tool: Any, template: ToolFormat) -> Any:
    found = _read_definition(tool) if isinstance(tool, dict) else None
    if found is None or found[0] == template.name:
        return tool
    return {name: value for name, value in template.write(found[1]).items() if value is not None}


def _read_definition(tool: JsonObject) -> tuple[str, ToolDefinition] | None:
    match tool:
        case {"name": str(name), "input_schema": schema}:
            return "anthropic", ToolDefinition(name, tool.get("description"), schema)
        case {"type": "function", "function": {"name": str(name)} as function}:
            schema = function.get("parameters")
            return "openai-chat", ToolDefinition(name, function.get("description"), schema)
        case {"type": "function", "name": str(name)}:
            return "openai-responses", ToolDefinition(
                name, tool.get("description"), tool.get("parameters")
            )
        case {"name": str(name), "inputSchema": schema}:
            return "mcp", ToolDefinition(name, tool.get("description"), schema)
        case _:
            return None


def _write_anthropic(tool: ToolDefinition) -> JsonObject:
    schema = tool.schema or {"type": "object", "properties": {}}
    return {
        "name": sanitize_tool_name(tool.name, 128),
        "description": tool.description,
        "input_schema": schema,
    }


def _write_openai_chat(tool: ToolDefinition) -> JsonObject:
    function = {
        "name": sanitize_tool_name(tool.name, 64),
        "description": tool.description,
        "parameters": tool.schema,
    }
    present = {name: value for name, value in function.items() if value is not None}
    return {"type": "function", "function": present}


def _write_openai_responses(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "function",
        "name": sanitize_tool_name(tool.name, 64),
        "description": tool.description,
        "parameters": tool.schema or {"type": "object", "properties": {}},
        "strict": False,  # the API's default, strict, may not suit another provider's schema
    }


ANTHROPIC_FORMAT = ToolFormat("anthropic", _write_anthropic)
OPENAI_CHAT_FORMAT = ToolFormat("openai-chat", _write_openai_chat)
OPENAI_RESPONSES_FORMAT = ToolFormat("openai-responses", _write_openai_responses)

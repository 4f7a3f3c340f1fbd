"""What tools the model is offered, said in the provider's form whichever form was recorded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..history_view import HistoryView
from .sendable import JsonObject, own
from .tool_calls import tool_name


@dataclass(frozen=True, slots=True)
class Tool:
    """What all forms have in common."""

    name: str
    description: str | None
    schema: Any


@dataclass(frozen=True, slots=True)
class Form:
    """One provider's way of writing a tool down."""

    name: str
    write: Callable[[Tool], JsonObject]


def definitions(view: HistoryView, form: Form) -> list[Any]:
    """A definition in this form already, or in none that is known, goes through as it is."""
    return [_definition(own(tool), form) for tool in view.tool_definitions]


def _definition(tool: Any, form: Form) -> Any:
    found = _read(tool) if isinstance(tool, dict) else None
    if found is None or found[0] == form.name:
        return tool
    return {name: value for name, value in form.write(found[1]).items() if value is not None}


def _read(tool: JsonObject) -> tuple[str, Tool] | None:
    match tool:
        case {"name": str(name), "input_schema": schema}:
            return "anthropic", Tool(name, tool.get("description"), schema)
        case {"type": "function", "function": {"name": str(name)} as function}:
            schema = function.get("parameters")
            return "openai-chat", Tool(name, function.get("description"), schema)
        case {"type": "function", "name": str(name)}:
            return "openai-responses", Tool(name, tool.get("description"), tool.get("parameters"))
        case {"name": str(name), "inputSchema": schema}:
            return "mcp", Tool(name, tool.get("description"), schema)
        case _:
            return None


def _anthropic(tool: Tool) -> JsonObject:
    schema = tool.schema or {"type": "object", "properties": {}}
    return {
        "name": tool_name(tool.name, 128),
        "description": tool.description,
        "input_schema": schema,
    }


def _openai_chat(tool: Tool) -> JsonObject:
    function = {
        "name": tool_name(tool.name, 64),
        "description": tool.description,
        "parameters": tool.schema,
    }
    present = {name: value for name, value in function.items() if value is not None}
    return {"type": "function", "function": present}


def _openai_responses(tool: Tool) -> JsonObject:
    return {
        "type": "function",
        "name": tool_name(tool.name, 64),
        "description": tool.description,
        "parameters": tool.schema or {"type": "object", "properties": {}},
        "strict": False,  # strict unless said otherwise, which another provider's schema may not be
    }


ANTHROPIC = Form("anthropic", _anthropic)
OPENAI_CHAT = Form("openai-chat", _openai_chat)
OPENAI_RESPONSES = Form("openai-responses", _openai_responses)

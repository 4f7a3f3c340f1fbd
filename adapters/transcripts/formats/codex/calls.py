"""What calls of tools become, and what their outputs do."""

from functools import partial
from typing import Any

from .....domain.blocks import Block, Native, NativePart, Part, Text, ToolCall, ToolResult
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, take, take_name, take_optional
from .entries import PROVIDER
from .pictures import picture
from .read import Read, native, without


def function_call(item: Item, _: Line) -> Read:
    call = take_name(item, "call_id")
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name=take(item, "name", str),
        arguments=take(item, "arguments", str),
    )
    rest = without(item, "call_id", "name", "arguments")
    return Read(rest, [piece], by_model=True, call=call)


def custom_tool_call(item: Item, line: Line) -> Read:
    # Its input is no JSON: as an object it suits every provider, and its own gets it back whole.
    call = take_name(item, "call_id")
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name=take(item, "name", str),
        arguments=line.json({"input": take(item, "input", str)}),
    )
    return native(item, line, piece, by_model=True, call=call)


def local_shell_call(item: Item, line: Line) -> Read:
    named = take_optional(item, "call_id", str) or take_optional(item, "id", str)
    call = named or f"local_shell:{line.number}"
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name="local_shell",
        arguments=line.json(take(item, "action", dict)),
    )
    return Read(without(item, "action"), [piece], by_model=True, call=call)


def tool_search_call(item: Item, line: Line) -> Read:
    call = take_optional(item, "call_id", str)
    if not call:
        said = partial(Block.assistant, "", name="tool_search_call")
        return native(item, line, said, by_model=True, served=True)
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name="tool_search",
        arguments=line.json(item.get("arguments")),
    )
    return Read(without(item, "arguments"), [piece], by_model=True, call=call)


def tool_search_output(item: Item, line: Line) -> Read:
    call = take_optional(item, "call_id", str)
    if not call:
        found = partial(Block.assistant, "", name="tool_search_output")
        return native(item, line, found, by_model=True)
    piece = partial(ToolResult, tool_call_id=call, content=line.json(take(item, "tools", list)))
    return Read(without(item, "tools"), [piece], call=call)


def output(item: Item, line: Line) -> Read:
    call = take_name(item, "call_id")
    output = item.get("output")
    rest = without(item, "call_id", "output")
    is_error = False
    content: str | tuple[Part, ...]
    if isinstance(output, str):
        content = output
    elif isinstance(output, dict):  # older versions: text, and whether it went well
        content = take(output, "content", str, "output.")
        is_error = take_optional(output, "success", bool, "output.") is False
        rest["output"] = without(output, "content")
    else:
        parts = take(item, "output", list)
        read = [_part(part, line) for part in parts]
        content = tuple(part for part, _ in read)
        rest["output"] = [left for _, left in read]
    piece = partial(ToolResult, tool_call_id=call, content=content, is_error=is_error)
    return Read(rest, [piece], call=call)


def _part(part: Any, line: Line) -> tuple[Part, Any]:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text), without(part, "text")
        case {"type": "input_image", "image_url": str(url)}:
            return picture(url), without(part, "image_url")
        case dict():
            return NativePart(native=Native(provider=PROVIDER, item=line.json(part))), None
        case _:
            raise MalformedError("output: expected text, or parts that are objects")

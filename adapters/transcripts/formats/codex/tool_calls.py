"""Reads tool calls and their outputs from response items."""

from functools import partial
from typing import Any

from .....domain.blocks import Block, Native, NativePart, ResultPart, Text, ToolCall, ToolResult
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, MalformedError, get_field, require_field, require_name
from .codex_images import image_from_url
from .entries import CODEX_PROVIDER
from .item_content import ItemContent, drop_item_fields, make_native_content


def read_function_call(item: JsonDict, _: SourceLine) -> ItemContent:
    call = require_name(item, "call_id")
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name=require_field(item, "name", str),
        arguments=require_field(item, "arguments", str),
    )
    rest = drop_item_fields(item, "call_id", "name", "arguments")
    return ItemContent(rest, [piece], is_by_model=True, call_id=call)


def read_custom_tool_call(item: JsonDict, line: SourceLine) -> ItemContent:
    # Its input is not JSON: an object suits every provider, and Codex gets the original back.
    call = require_name(item, "call_id")
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name=require_field(item, "name", str),
        arguments=line.to_json({"input": require_field(item, "input", str)}),
    )
    return make_native_content(item, line, piece, by_model=True, call=call)


def read_local_shell_call(item: JsonDict, line: SourceLine) -> ItemContent:
    named = get_field(item, "call_id", str) or get_field(item, "id", str)
    call = named or f"local_shell:{line.number}"
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name="local_shell",
        arguments=line.to_json(require_field(item, "action", dict)),
    )
    return ItemContent(drop_item_fields(item, "action"), [piece], is_by_model=True, call_id=call)


def read_tool_search_call(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        said = partial(Block.assistant, "", name="tool_search_call")
        return make_native_content(item, line, said, by_model=True, served=True)
    piece = partial(
        ToolCall,
        tool_call_id=call,
        name="tool_search",
        arguments=line.to_json(item.get("arguments")),
    )
    return ItemContent(drop_item_fields(item, "arguments"), [piece], is_by_model=True, call_id=call)


def read_tool_search_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        found = partial(Block.assistant, "", name="tool_search_output")
        return make_native_content(item, line, found, by_model=True)
    piece = partial(
        ToolResult, tool_call_id=call, content=line.to_json(require_field(item, "tools", list))
    )
    return ItemContent(drop_item_fields(item, "tools"), [piece], call_id=call)


def read_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = require_name(item, "call_id")
    output = item.get("output")
    rest = drop_item_fields(item, "call_id", "output")
    is_error = False
    content: str | tuple[ResultPart, ...]
    if isinstance(output, str):
        content = output
    elif isinstance(output, dict):  # older versions: text, and whether the call succeeded
        content = require_field(output, "content", str, "output.")
        is_error = get_field(output, "success", bool, "output.") is False
        rest["output"] = drop_item_fields(output, "content")
    else:
        parts = require_field(item, "output", list)
        read = [_read_part(part, line) for part in parts]
        content = tuple(part for part, _ in read)
        rest["output"] = [left for _, left in read]
    piece = partial(ToolResult, tool_call_id=call, content=content, is_error=is_error)
    return ItemContent(rest, [piece], call_id=call)


def _read_part(part: Any, line: SourceLine) -> tuple[ResultPart, Any]:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text), drop_item_fields(part, "text")
        case {"type": "input_image", "image_url": str(url)}:
            return image_from_url(url), drop_item_fields(part, "image_url")
        case dict():
            return NativePart(native=Native(provider=CODEX_PROVIDER, item=line.to_json(part))), None
        case _:
            raise MalformedError("output: expected text, or parts that are objects")

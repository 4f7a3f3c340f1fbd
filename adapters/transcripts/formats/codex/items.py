"""Converts a response item to blocks, and the remainder that no block holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..fields import (
    JsonDict,
    MalformedError,
    drop_fields,
    get_field,
    require_field,
    require_name,
    require_object,
)
from ..json_lines import SourceLine
from ..media_text import base64_to_bytes, bytes_to_base64, split_data_url
from .entries import CODEX_PROVIDER, PASSTHROUGH_FIELD, is_injected

TEXT_PART_TYPES = frozenset({"input_text", "output_text", "text"})
SERVER_TOOL_TYPES = frozenset(
    {"web_search_call", "image_generation_call", "mcp_call", "code_interpreter_call"}
    | {"file_search_call", "computer_call"}
)
"""Calls that the provider answers itself, in the same item."""
OPAQUE_ITEM_TYPES = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "additional_tools"}
)
"""Items that only the provider understands, and that no model wrote."""
RAW_ITEM_TYPES = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Items that are kept unchanged; no model is sent them again."""


class UnknownCodexItemError(ValueError):
    """An item, or a part of one, of an unknown type."""


@dataclass(slots=True)
class ItemContent:
    """The blocks of an item, without their origins, and the remainder."""

    rest: JsonDict
    blocks: list[AnyBlock] = field(default_factory=list)
    is_by_model: bool = False
    is_server_tool: bool = False
    call_id: str | None = None
    """The id of the call that it makes or answers."""
    is_message: bool = False


def read_item(item: JsonDict, line: SourceLine) -> ItemContent:
    """Read a response item. An item without blocks is kept unchanged."""
    kind = require_field(item, "type", str)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in SERVER_TOOL_TYPES:
        return _keep_served(item, line, kind)
    if kind in OPAQUE_ITEM_TYPES:
        return _keep_native(item, line, Block.developer("", name=kind))
    if kind in RAW_ITEM_TYPES:
        return ItemContent(item)
    raise UnknownCodexItemError(kind)


def read_communication(item: JsonDict) -> ItemContent:
    """Read a message of another agent that has its own line."""
    text = require_field(item, "content", str)
    author = get_field(item, "author", str) or "agent"
    if not text:
        return ItemContent(item)
    return ItemContent(drop_fields(item, "content"), [Block.developer(text, name=author)])


def _keep_native(
    item: JsonDict, line: SourceLine, block: AnyBlock, *, by_model: bool = False
) -> ItemContent:
    """Return the content of an item that goes back to its provider unchanged."""
    own = line.to_json(drop_fields(item, PASSTHROUGH_FIELD))
    native = Native(provider=CODEX_PROVIDER, item=own)
    rest = {PASSTHROUGH_FIELD: item[PASSTHROUGH_FIELD]} if PASSTHROUGH_FIELD in item else {}
    return ItemContent(rest, [block.model_copy(update={"native": native})], by_model)


def _keep_served(item: JsonDict, line: SourceLine, kind: str) -> ItemContent:
    found = _keep_native(item, line, Block.assistant("", name=kind), by_model=True)
    found.is_server_tool = True
    return found


def _read_message(item: JsonDict, line: SourceLine) -> ItemContent:
    role = require_field(item, "role", str)
    rests: list[Any] = []
    blocks: list[AnyBlock] = []
    for part in require_field(item, "content", list):
        block = _read_part(part, role)
        if block is not None:
            blocks.append(block)
        rests.append(part if block is None else drop_fields(part, "text", "image_url"))
    if len(blocks) > 1 and role != "assistant":
        # One message of several parts is never split.
        shared = {"message_id": f"line:{line.number}"}
        blocks = [block.model_copy(update=shared) for block in blocks]
    by_model = role == "assistant"
    return ItemContent({**item, "content": rests}, blocks, by_model, is_message=True)


def _read_part(part: Any, role: str) -> Block | None:
    part = require_object(part, "content: ")
    kind = require_field(part, "type", str, "content: ")
    if kind in TEXT_PART_TYPES:
        text = require_field(part, "text", str, "content: ")
        return Block(kind=_classify_text(role, text), text=text) if text else None
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return Block(kind=Kind.IMAGE, media=_image_from_url(url))
    raise UnknownCodexItemError(f"message/{kind}")


def _classify_text(role: str, text: str) -> Kind:
    if role == "assistant":
        return Kind.ASSISTANT
    return Kind.USER if role == "user" and not is_injected(text) else Kind.DEVELOPER


def _read_reasoning(item: JsonDict, line: SourceLine) -> ItemContent:
    texts = _read_texts(item, "summary") or _read_texts(item, "content")
    if not texts and not get_field(item, "encrypted_content", str):
        return ItemContent(item)
    return _keep_native(item, line, Block.thinking("\n\n".join(texts)), by_model=True)


def _read_texts(item: JsonDict, field: str) -> list[str]:
    within = f"{field}: "
    parts = [require_object(part, within) for part in get_field(item, field, list) or []]
    return [require_field(part, "text", str, within) for part in parts]


def _read_generated_image(item: JsonDict, line: SourceLine) -> ItemContent:
    # The user looked at it; the surrounding text tells the model about it.
    name = "image_generation_call"
    data = _decode_exact_base64(get_field(item, "result", str) or "")
    if not data:
        return _keep_served(item, line, name)
    media = Media(type="image", mime="image/png", data=data)
    block = Block(kind=Kind.ARTIFACT, media=media, name=name)
    return ItemContent(drop_fields(item, "result"), [block], is_by_model=True, is_server_tool=True)


def _read_agent_message(item: JsonDict, line: SourceLine) -> ItemContent:
    author = get_field(item, "author", str) or "agent"
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    if all(_is_text(part) for part in content):
        rest = {**item, "content": [drop_fields(part, "text") for part in content]}
        return ItemContent(rest, [Block.developer(part["text"], name=author) for part in content])
    return _keep_native(item, line, Block.developer("", name=author))


def _is_text(part: JsonDict) -> bool:
    match part:
        case {"type": str(kind), "text": str()}:
            return kind in TEXT_PART_TYPES
        case _:
            return False


def _make_call(item: JsonDict, call: str, name: str, arguments: str, *fields: str) -> ItemContent:
    block = ToolCall(tool_call_id=call, name=name, arguments=arguments)
    return ItemContent(drop_fields(item, *fields), [block], is_by_model=True, call_id=call)


def _read_function_call(item: JsonDict, _: SourceLine) -> ItemContent:
    call = require_name(item, "call_id")
    name, arguments = require_field(item, "name", str), require_field(item, "arguments", str)
    return _make_call(item, call, name, arguments, "call_id", "name", "arguments")


def _read_custom_tool_call(item: JsonDict, line: SourceLine) -> ItemContent:
    # Its input is not JSON: an object suits every provider, and Codex gets the original back.
    call = require_name(item, "call_id")
    name = require_field(item, "name", str)
    arguments = line.to_json({"input": require_field(item, "input", str)})
    block = ToolCall(tool_call_id=call, name=name, arguments=arguments)
    found = _keep_native(item, line, block, by_model=True)
    found.call_id = call
    return found


def _read_local_shell_call(item: JsonDict, line: SourceLine) -> ItemContent:
    named = get_field(item, "call_id", str) or get_field(item, "id", str)
    arguments = line.to_json(require_field(item, "action", dict))
    call = named or f"local_shell:{line.number}"
    return _make_call(item, call, "local_shell", arguments, "action")


def _read_tool_search_call(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        return _keep_served(item, line, "tool_search_call")
    arguments = line.to_json(item.get("arguments"))
    return _make_call(item, call, "tool_search", arguments, "arguments")


def _read_tool_search_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        return _keep_native(
            item, line, Block.assistant("", name="tool_search_output"), by_model=True
        )
    found = line.to_json(require_field(item, "tools", list))
    block = ToolResult(tool_call_id=call, content=found)
    return ItemContent(drop_fields(item, "tools"), [block], call_id=call)


def _read_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = require_name(item, "call_id")
    output = item.get("output")
    rest = drop_fields(item, "call_id", "output")
    is_error = False
    content: str | tuple[ResultPart, ...]
    if isinstance(output, str):
        content = output
    elif isinstance(output, dict):  # older versions: text, and whether the call succeeded
        content = require_field(output, "content", str, "output.")
        is_error = get_field(output, "success", bool, "output.") is False
        rest["output"] = drop_fields(output, "content")
    else:
        read = [_read_output_part(part, line) for part in require_field(item, "output", list)]
        content = tuple(part for part, _ in read)
        rest["output"] = [left for _, left in read]
    block = ToolResult(tool_call_id=call, content=content, is_error=is_error)
    return ItemContent(rest, [block], call_id=call)


def _read_output_part(part: Any, line: SourceLine) -> tuple[ResultPart, Any]:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text), drop_fields(part, "text")
        case {"type": "input_image", "image_url": str(url)}:
            return _image_from_url(url), drop_fields(part, "image_url")
        case dict():
            return NativePart(native=Native(provider=CODEX_PROVIDER, item=line.to_json(part))), None
        case _:
            raise MalformedError("output: expected text, or parts that are objects")


def _image_from_url(url: str) -> Media:
    """Return the image at a URL; with its bytes, if encoding them gives the same URL."""
    held = split_data_url(url)
    if held and (found := _decode_exact_base64(held[1])) is not None:
        return Media(type="image", mime=held[0], data=found)
    return Media(type="image", mime="image/*", url=url)


def _decode_exact_base64(data: str) -> bytes | None:
    """Decode base64; return None if encoding the bytes gives another text."""
    found = base64_to_bytes(data)
    return found if found is not None and bytes_to_base64(found) == data else None


_READERS: dict[str, Callable[[JsonDict, SourceLine], ItemContent]] = {
    "agent_message": _read_agent_message,
    "custom_tool_call": _read_custom_tool_call,
    "custom_tool_call_output": _read_output,
    "function_call": _read_function_call,
    "function_call_output": _read_output,
    "image_generation_call": _read_generated_image,
    "local_shell_call": _read_local_shell_call,
    "message": _read_message,
    "reasoning": _read_reasoning,
    "tool_search_call": _read_tool_search_call,
    "tool_search_output": _read_tool_search_output,
}

"""Converts a response item to blocks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    BlockKind,
    Media,
    Native,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..content import base64_to_bytes, image_from_address
from ..fields import (
    JsonDict,
    MalformedError,
    UnknownItemError,
    drop_fields,
    get_field,
    require_field,
    require_name,
    require_object,
)
from ..json_lines import SourceLine
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
"""Items that no model is sent again."""


MODEL_KINDS = (BlockKind.ASSISTANT, BlockKind.THINKING, BlockKind.TOOL_CALL, BlockKind.ARTIFACT)


@dataclass(slots=True)
class ItemContent:
    """The blocks of an item, without their origins."""

    blocks: list[AnyBlock] = field(default_factory=list)
    is_server_tool: bool = False

    @property
    def call_id(self) -> str | None:
        """The id of the call that it makes or answers."""
        block = self.blocks[0] if self.blocks else None
        return block.tool_call_id if isinstance(block, (ToolCall, ToolResult)) else None


def read_item(item: JsonDict, line: SourceLine) -> ItemContent:
    """Read a response item. An item without blocks is skipped."""
    kind = require_field(item, "type", str)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in SERVER_TOOL_TYPES:
        return _keep_served(item, line)
    if kind in OPAQUE_ITEM_TYPES:
        return _keep_native(item, line, Block.developer("", name=kind))
    if kind in RAW_ITEM_TYPES:
        return ItemContent()
    raise UnknownItemError(f"response_item/{kind}")


def read_communication(item: JsonDict) -> ItemContent:
    """Read a message of another agent that has its own line."""
    text = require_field(item, "content", str)
    author = get_field(item, "author", str) or "agent"
    return ItemContent([Block.developer(text, name=author)] if text else [])


def _keep_native(item: JsonDict, line: SourceLine, block: AnyBlock) -> ItemContent:
    """Return the content of an item that goes back to its provider unchanged."""
    native = _make_native(drop_fields(item, PASSTHROUGH_FIELD), line)
    return ItemContent([block.model_copy(update={"native": native})])


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CODEX_PROVIDER, item=line.to_json(item))


def _keep_served(item: JsonDict, line: SourceLine) -> ItemContent:
    found = _keep_native(item, line, Block.assistant("", name=item["type"]))
    found.is_server_tool = True
    return found


def _read_message(item: JsonDict, line: SourceLine) -> ItemContent:
    role = require_field(item, "role", str)
    parts = [_read_part(part, role) for part in require_field(item, "content", list)]
    blocks: list[AnyBlock] = [block for block in parts if block is not None]
    if len(blocks) > 1 and role != "assistant":
        # One message of several parts is never split.
        shared = {"message_id": f"line:{line.number}"}
        blocks = [block.model_copy(update=shared) for block in blocks]
    return ItemContent(blocks)


def _read_part(part: Any, role: str) -> Block | None:
    part = require_object(part, "content: ")
    kind = require_field(part, "type", str, "content: ")
    if kind in TEXT_PART_TYPES:
        text = require_field(part, "text", str, "content: ")
        return Block(kind=_classify_text(role, text), text=text) if text else None
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return Block(kind=BlockKind.IMAGE, media=image_from_address(url))
    raise UnknownItemError(f"response_item/message/{kind}")


def _classify_text(role: str, text: str) -> BlockKind:
    if role == "assistant":
        return BlockKind.ASSISTANT
    return BlockKind.USER if role == "user" and not is_injected(text) else BlockKind.DEVELOPER


def _read_reasoning(item: JsonDict, line: SourceLine) -> ItemContent:
    texts = _read_texts(item, "summary") or _read_texts(item, "content")
    if not texts and not get_field(item, "encrypted_content", str):
        return ItemContent()
    return _keep_native(item, line, Block.thinking("\n\n".join(texts)))


def _read_texts(item: JsonDict, field: str) -> list[str]:
    within = f"{field}: "
    parts = [require_object(part, within) for part in get_field(item, field, list) or []]
    return [require_field(part, "text", str, within) for part in parts]


def _read_generated_image(item: JsonDict, line: SourceLine) -> ItemContent:
    # The user looked at it; the surrounding text tells the model about it.
    data = base64_to_bytes(get_field(item, "result", str) or "")
    if not data:
        return _keep_served(item, line)
    media = Media(type="image", mime="image/png", data=data)
    block = Block(kind=BlockKind.ARTIFACT, media=media, name=item["type"])
    return ItemContent([block], is_server_tool=True)


def _read_agent_message(item: JsonDict, line: SourceLine) -> ItemContent:
    author = get_field(item, "author", str) or "agent"
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    texts = [part["text"] for part in content if _is_text(part)]
    if len(texts) < len(content):
        return _keep_native(item, line, Block.developer("", name=author))
    return ItemContent([Block.developer(text, name=author) for text in texts])


def _is_text(part: JsonDict) -> bool:
    match part:
        case {"type": str(kind), "text": str()}:
            return kind in TEXT_PART_TYPES
        case _:
            return False


def _read_function_call(item: JsonDict, _: SourceLine) -> ItemContent:
    call = ToolCall(
        tool_call_id=require_name(item, "call_id"),
        name=require_field(item, "name", str),
        arguments=require_field(item, "arguments", str),
    )
    return ItemContent([call])


def _read_custom_tool_call(item: JsonDict, line: SourceLine) -> ItemContent:
    # Its input is not JSON: an object suits every provider, and Codex gets the original back.
    call = ToolCall(
        tool_call_id=require_name(item, "call_id"),
        name=require_field(item, "name", str),
        arguments=line.to_json({"input": require_field(item, "input", str)}),
    )
    return _keep_native(item, line, call)


def _read_local_shell_call(item: JsonDict, line: SourceLine) -> ItemContent:
    named = get_field(item, "call_id", str) or get_field(item, "id", str)
    arguments = line.to_json(require_field(item, "action", dict))
    id = named or f"local_shell:{line.number}"
    call = ToolCall(tool_call_id=id, name="local_shell", arguments=arguments)
    return ItemContent([call])


def _read_tool_search_call(item: JsonDict, line: SourceLine) -> ItemContent:
    id = get_field(item, "call_id", str)
    if not id:
        return _keep_served(item, line)
    arguments = line.to_json(item.get("arguments"))
    call = ToolCall(tool_call_id=id, name="tool_search", arguments=arguments)
    return ItemContent([call])


def _read_tool_search_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        return _keep_native(item, line, Block.assistant("", name="tool_search_output"))
    tools = line.to_json(require_field(item, "tools", list))
    return ItemContent([ToolResult(tool_call_id=call, content=tools)])


def _read_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = require_name(item, "call_id")
    output = item.get("output")
    is_error = False
    content: str | tuple[ResultPart, ...]
    if isinstance(output, str):
        content = output
    elif isinstance(output, dict):  # older versions: text, and whether the call succeeded
        content = require_field(output, "content", str, "output.")
        is_error = get_field(output, "success", bool, "output.") is False
    else:
        parts = require_field(item, "output", list)
        content = tuple(_read_output_part(part, line) for part in parts)
    return ItemContent([ToolResult(tool_call_id=call, content=content, is_error=is_error)])


def _read_output_part(part: Any, line: SourceLine) -> ResultPart:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text)
        case {"type": "input_image", "image_url": str(url)}:
            return image_from_address(url)
        case dict():
            return NativePart(native=_make_native(part, line))
        case _:
            raise MalformedError("output: expected text, or parts that are objects")


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

"""Converts a response item to blocks, and the remainder that no block holds, and back."""

import json
from collections.abc import Callable, Iterator, Sequence
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
from ..media_text import base64_to_bytes, bytes_to_base64, make_media_address, split_data_url
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


MODEL_KINDS = (Kind.ASSISTANT, Kind.THINKING, Kind.TOOL_CALL, Kind.ARTIFACT)


@dataclass(slots=True)
class ItemContent:
    """The blocks of an item, without their origins, and the remainder."""

    rest: JsonDict
    blocks: list[AnyBlock] = field(default_factory=list)
    is_server_tool: bool = False

    @property
    def call_id(self) -> str | None:
        """The id of the call that it makes or answers."""
        block = self.blocks[0] if self.blocks else None
        return block.tool_call_id if isinstance(block, (ToolCall, ToolResult)) else None


def read_item(item: JsonDict, line: SourceLine) -> ItemContent:
    """Read a response item. An item without blocks is kept unchanged."""
    kind = require_field(item, "type", str)
    if reader := _READERS.get(kind):
        return reader(item, line)
    if kind in SERVER_TOOL_TYPES:
        return _keep_served(item, line)
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


def _keep_native(item: JsonDict, line: SourceLine, block: AnyBlock) -> ItemContent:
    """Return the content of an item that goes back to its provider unchanged."""
    native = _make_native(drop_fields(item, PASSTHROUGH_FIELD), line)
    rest = {PASSTHROUGH_FIELD: item[PASSTHROUGH_FIELD]} if PASSTHROUGH_FIELD in item else {}
    return ItemContent(rest, [block.model_copy(update={"native": native})])


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CODEX_PROVIDER, item=line.to_json(item))


def _keep_served(item: JsonDict, line: SourceLine) -> ItemContent:
    found = _keep_native(item, line, Block.assistant("", name=item["type"]))
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
    return ItemContent({**item, "content": rests}, blocks)


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
    return _keep_native(item, line, Block.thinking("\n\n".join(texts)))


def _read_texts(item: JsonDict, field: str) -> list[str]:
    within = f"{field}: "
    parts = [require_object(part, within) for part in get_field(item, field, list) or []]
    return [require_field(part, "text", str, within) for part in parts]


def _read_generated_image(item: JsonDict, line: SourceLine) -> ItemContent:
    # The user looked at it; the surrounding text tells the model about it.
    data = _decode_exact_base64(get_field(item, "result", str) or "")
    if not data:
        return _keep_served(item, line)
    media = Media(type="image", mime="image/png", data=data)
    block = Block(kind=Kind.ARTIFACT, media=media, name=item["type"])
    return ItemContent(drop_fields(item, "result"), [block], is_server_tool=True)


def _read_agent_message(item: JsonDict, line: SourceLine) -> ItemContent:
    author = get_field(item, "author", str) or "agent"
    content = [require_object(part, "content: ") for part in require_field(item, "content", list)]
    texts = [part["text"] for part in content if _is_text(part)]
    if len(texts) < len(content):
        return _keep_native(item, line, Block.developer("", name=author))
    rest = {**item, "content": [drop_fields(part, "text") for part in content]}
    return ItemContent(rest, [Block.developer(text, name=author) for text in texts])


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
    return ItemContent(drop_fields(item, "call_id", "name", "arguments"), [call])


def _read_custom_tool_call(item: JsonDict, line: SourceLine) -> ItemContent:
    # Its input is not JSON: an object suits every provider, and Codex gets the original back.
    call = ToolCall(
        tool_call_id=require_name(item, "call_id"),
        name=require_field(item, "name", str),
        arguments=line.to_json({"input": require_field(item, "input", str)}),
    )
    return _keep_native(item, line, call)


_JSON_FIELDS = {
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "tool_search_output": "tools",
}
"""The fields of items whose blocks have their JSON."""


def _read_local_shell_call(item: JsonDict, line: SourceLine) -> ItemContent:
    named = get_field(item, "call_id", str) or get_field(item, "id", str)
    arguments = line.to_json(require_field(item, "action", dict))
    id = named or f"local_shell:{line.number}"
    call = ToolCall(tool_call_id=id, name="local_shell", arguments=arguments)
    return ItemContent(drop_fields(item, "action"), [call])


def _read_tool_search_call(item: JsonDict, line: SourceLine) -> ItemContent:
    id = get_field(item, "call_id", str)
    if not id:
        return _keep_served(item, line)
    arguments = line.to_json(item.get("arguments"))
    call = ToolCall(tool_call_id=id, name="tool_search", arguments=arguments)
    return ItemContent(drop_fields(item, "arguments"), [call])


def _read_tool_search_output(item: JsonDict, line: SourceLine) -> ItemContent:
    call = get_field(item, "call_id", str)
    if not call:
        return _keep_native(item, line, Block.assistant("", name="tool_search_output"))
    tools = line.to_json(require_field(item, "tools", list))
    return ItemContent(drop_fields(item, "tools"), [ToolResult(tool_call_id=call, content=tools)])


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
    return ItemContent(rest, [ToolResult(tool_call_id=call, content=content, is_error=is_error)])


def _read_output_part(part: Any, line: SourceLine) -> tuple[ResultPart, Any]:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text), drop_fields(part, "text")
        case {"type": "input_image", "image_url": str(url)}:
            return _image_from_url(url), drop_fields(part, "image_url")
        case dict():
            return NativePart(native=_make_native(part, line)), None
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


def restore_line(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    """Return the original line; None if a part of it is gone."""
    payload = rest.get("payload", rest)
    item = _restore_item(payload, blocks)
    if item is None:
        return None
    return {**rest, "payload": item} if "payload" in rest else item


def find_native_item(block: AnyBlock) -> JsonDict | None:
    if block.native is None or block.native.provider != CODEX_PROVIDER:
        return None
    item = json.loads(block.native.item)
    return item if isinstance(item, dict) else None


def _restore_item(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    first, kind = blocks[0], rest.get("type")
    if kind in ("message", "agent_message"):
        return _restore_content(rest, blocks)
    if len(blocks) > 1:
        return None
    if kind is None and "content" not in rest and (own := find_native_item(first)) is not None:
        return {**own, **rest}
    if field := _JSON_FIELDS.get(str(kind)):
        return {**rest, field: json.loads(first.text)}
    match first:
        case ToolCall(tool_call_id=call, name=name, arguments=arguments):
            return {**rest, "name": name, "arguments": arguments, "call_id": call}
        case ToolResult():
            return _restore_output(rest, first)
        case Block(media=Media(data=data)) if kind == "image_generation_call":
            return {**rest, "result": bytes_to_base64(data)}
        case _ if kind is None:
            return {**rest, "content": first.text}  # another agent's message on its own line
        case _:
            return None


def _restore_content(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    images = [block.media for block in blocks if isinstance(block, Block) and block.media]
    addresses = map(make_media_address, images)
    texts = (block.text for block in blocks if not (isinstance(block, Block) and block.media))
    content: list[Any] = []
    for part in rest["content"]:
        if "text" in part:
            content.append(part)
            continue
        is_image = part["type"] == "input_image"
        value = next(addresses if is_image else texts, None)
        if value is None:
            return None
        content.append({**part, "image_url" if is_image else "text": value})
    return {**rest, "content": content}


def _restore_output(rest: JsonDict, result: ToolResult) -> JsonDict | None:
    content, output = result.content, rest.get("output")
    restored: Any = content
    if isinstance(content, tuple):
        if not isinstance(output, list) or len(content) != len(output):
            return None
        restored = [*_restore_parts(content, output)]
    elif isinstance(output, list):
        return None
    elif isinstance(output, dict):
        restored = {**output, "content": content}
    return {**rest, "call_id": result.tool_call_id, "output": restored}


def _restore_parts(content: tuple[ResultPart, ...], rests: list[Any]) -> Iterator[Any]:
    for part, rest in zip(content, rests, strict=True):
        match part:
            case Text(text=text):
                yield {**rest, "text": text}
            case Media():
                yield {**rest, "image_url": make_media_address(part)}
            case NativePart(native=native):
                yield json.loads(native.item)

"""Restores an item from its blocks and the remainder in the first origin."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    Media,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..content.media_text import bytes_to_base64, make_media_address
from ..reading.fields import JsonDict
from .entries import CODEX_PROVIDER

_CONTENT_ITEM_TYPES = frozenset({"message", "agent_message"})


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
    first = blocks[0]
    kind = rest.get("type")
    if kind in _CONTENT_ITEM_TYPES:
        return _restore_content(rest, blocks)
    if len(blocks) > 1:
        return None
    if kind is None and "content" not in rest and (own := find_native_item(first)) is not None:
        return {**own, **rest}
    match first:
        case ToolCall(tool_call_id=call, name=name, arguments=arguments):
            return _restore_call(rest, call, name, arguments)
        case ToolResult():
            return _restore_result(rest, first)
        case Block(media=Media(data=data)) if kind == "image_generation_call":
            return {**rest, "result": bytes_to_base64(data)}
        case Block(text=text) if kind is None:
            return {**rest, "content": text}  # another agent's message, on a line of its own
        case _:
            return None


def _restore_content(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    texts = iter([block.text for block in blocks if not _media_in(block)])
    images = iter([media for block in blocks if (media := _media_in(block))])
    content: list[Any] = []
    for part in rest["content"]:
        if part["type"] == "input_image":
            image = next(images, None)
            if image is None:
                return None
            content.append({**part, "image_url": make_media_address(image)})
        elif "text" in part:
            content.append(part)
        else:
            text = next(texts, None)
            if text is None:
                return None
            content.append({**part, "text": text})
    return {**rest, "content": content}


def _media_in(block: AnyBlock) -> Media | None:
    return block.media if isinstance(block, Block) else None


def _restore_call(rest: JsonDict, call: str, name: str, arguments: str) -> JsonDict | None:
    match rest.get("type"):
        case "function_call":
            return {**rest, "name": name, "arguments": arguments, "call_id": call}
        case "local_shell_call":
            return {**rest, "action": json.loads(arguments)}
        case "tool_search_call":
            return {**rest, "arguments": json.loads(arguments)}
        case _:
            return None


def _restore_result(rest: JsonDict, result: ToolResult) -> JsonDict | None:
    content, output = result.content, rest.get("output")
    if rest.get("type") == "tool_search_output":
        return {**rest, "tools": json.loads(result.text)}
    if isinstance(content, str) and not isinstance(output, list):
        text = {**output, "content": content} if isinstance(output, dict) else content
        return {**rest, "call_id": result.tool_call_id, "output": text}
    if isinstance(content, tuple) and isinstance(output, list) and len(content) == len(output):
        parts = [*_restore_parts(content, output)]
        return {**rest, "call_id": result.tool_call_id, "output": parts}
    return None


def _restore_parts(content: tuple[ResultPart, ...], rests: list[Any]) -> Iterator[Any]:
    for part, rest in zip(content, rests, strict=True):
        match part:
            case Text(text=text):
                yield {**rest, "text": text}
            case Media():
                yield {**rest, "image_url": make_media_address(part)}
            case NativePart(native=native):
                yield json.loads(native.item)

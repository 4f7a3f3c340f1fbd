"""Puts an item back together: what its blocks hold, and the rest that was kept with the first."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, NativePart, Part, Text, ToolCall, ToolResult
from ..content.media_text import address_of, base64_of
from ..reading.fields import Item
from .entries import PROVIDER

_CONTENT = frozenset({"message", "agent_message"})


def restored(rest: Item, blocks: Sequence[AnyBlock]) -> Item | None:
    """The line that the rest and the blocks were; None where something of them is gone."""
    payload = rest.get("payload", rest)
    item = _item(payload, blocks)
    if item is None:
        return None
    return {**rest, "payload": item} if "payload" in rest else item


def own_item(block: AnyBlock) -> Item | None:
    """The item that a block keeps as it came."""
    if block.native is None or block.native.provider != PROVIDER:
        return None
    item = json.loads(block.native.item)
    return item if isinstance(item, dict) else None


def _item(rest: Item, blocks: Sequence[AnyBlock]) -> Item | None:
    first = blocks[0]
    kind = rest.get("type")
    if kind in _CONTENT:
        return _with_content(rest, blocks)
    if len(blocks) > 1:
        return None
    if kind is None and "content" not in rest and (own := own_item(first)) is not None:
        return {**own, **rest}
    match first:
        case ToolCall(tool_call_id=call, name=name, arguments=arguments):
            return _call(rest, call, name, arguments)
        case ToolResult():
            return _result(rest, first)
        case Block(media=Media(data=data)) if kind == "image_generation_call":
            return {**rest, "result": base64_of(data)}
        case Block(text=text) if kind is None:
            return {**rest, "content": text}  # what another agent said, in a line of its own
        case _:
            return None


def _with_content(rest: Item, blocks: Sequence[AnyBlock]) -> Item | None:
    texts = iter([block.text for block in blocks if not _media_of(block)])
    images = iter([media for block in blocks if (media := _media_of(block))])
    content: list[Any] = []
    for part in rest["content"]:
        if part["type"] == "input_image":
            image = next(images, None)
            if image is None:
                return None
            content.append({**part, "image_url": address_of(image)})
        elif "text" in part:
            content.append(part)
        else:
            text = next(texts, None)
            if text is None:
                return None
            content.append({**part, "text": text})
    return {**rest, "content": content}


def _media_of(block: AnyBlock) -> Media | None:
    return block.media if isinstance(block, Block) else None


def _call(rest: Item, call: str, name: str, arguments: str) -> Item | None:
    match rest.get("type"):
        case "function_call":
            return {**rest, "name": name, "arguments": arguments, "call_id": call}
        case "local_shell_call":
            return {**rest, "action": json.loads(arguments)}
        case "tool_search_call":
            return {**rest, "arguments": json.loads(arguments)}
        case _:
            return None


def _result(rest: Item, result: ToolResult) -> Item | None:
    content, output = result.content, rest.get("output")
    if rest.get("type") == "tool_search_output":
        return {**rest, "tools": json.loads(result.text)}
    if isinstance(content, str) and not isinstance(output, list):
        text = {**output, "content": content} if isinstance(output, dict) else content
        return {**rest, "call_id": result.tool_call_id, "output": text}
    if isinstance(content, tuple) and isinstance(output, list) and len(content) == len(output):
        parts = [*_parts(content, output)]
        return {**rest, "call_id": result.tool_call_id, "output": parts}
    return None


def _parts(content: tuple[Part, ...], rests: list[Any]) -> Iterator[Any]:
    for part, rest in zip(content, rests, strict=True):
        match part:
            case Text(text=text):
                yield {**rest, "text": text}
            case Media():
                yield {**rest, "image_url": address_of(part)}
            case NativePart(native=native):
                yield json.loads(native.item)

"""What of an entry its blocks do not hold, and the entry put together again.

Of each item of the content, the rest says what its block does not: nothing in most cases, and then
the content is an empty list. An item that no block holds stands there whole, in a pair with false;
in a pair with true, where a block was made of it that does not tell all of it.
"""

import json
from collections.abc import Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, NativePart, Part, Text, ToolCall, ToolResult
from ..content.media_text import base64_of
from ..json_lines import Line
from ..reading.fields import Item

Held = dict[int, AnyBlock]
"""The blocks of a content, by the index of their item."""

_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content"})


def rest_of(entry: Item, line: Line, held: Held) -> str:
    """The entry as JSON text, without what its blocks hold.

    `toolUseResult` repeats the content in the tool's own shape, often at many times its size: only
    the sub-agent that it names is kept.
    """
    rest = dict(entry)
    match rest.pop("toolUseResult", None):
        case {"agentId": str(agent)}:
            rest["toolUseResult"] = {"agentId": agent}
        case _:
            pass
    match rest:
        case {"message": {"content": str(content)}}:
            if 0 in held and held[0].text == content:
                rest["message"] = {**rest["message"], "content": ""}
        case {"message": {"content": list(items)}}:
            rest["message"] = {**rest["message"], "content": _extras(items, held)}
        case {"attachment": {"prompt": list(items)}}:
            rest["attachment"] = {**rest["attachment"], "prompt": _extras(items, held)}
        case {"attachment": {"content": {"file": {"base64": str()} as file} as content}} if (
            _is_media(held.get(0))
        ):
            emptied = {**content, "file": {**file, "base64": ""}}
            rest["attachment"] = {**rest["attachment"], "content": emptied}
        case _:
            pass
    return line.json(rest)


def entry_of(rest: Item, blocks: Sequence[AnyBlock]) -> Item:
    """The entry whole again."""
    match rest:
        case {"message": {"content": ""}}:
            rest["message"]["content"] = blocks[0].text
        case {"message": {"content": list(extras)}}:
            rest["message"]["content"] = _items(extras, blocks)
        case {"attachment": {"prompt": list(extras)}}:
            rest["attachment"]["prompt"] = _items(extras, blocks)
        case {"attachment": {"content": {"file": {"base64": ""} as file}}}:
            if isinstance(blocks[0], Block) and blocks[0].media:
                file["base64"] = base64_of(blocks[0].media.data)
        case _:
            pass
    return rest


def item_of(block: AnyBlock, extra: Item | None = None) -> Item:
    """A block as an item of a message's content."""
    more = dict(extra or {})
    if block.native is not None:
        found: Item = json.loads(block.native.item)
        return found
    match block:
        case ToolCall(tool_call_id=id, name=name):
            called = json.loads(block.arguments)
            return {"type": "tool_use", "id": id, "name": name, "input": called, **more}
        case ToolResult(tool_call_id=id, content=content):
            inner = more.pop("content", None) or [{}] * len(content)
            if not isinstance(content, str):
                parts = zip(content, inner, strict=True)
                content = [_part_item(part, one) for part, one in parts]  # type: ignore[assignment]
            return {"type": "tool_result", "tool_use_id": id, "content": content, **more}
        case Block(media=Media() as media):
            return _part_item(media, more)
        case _:
            return {"type": "text", "text": block.text, **more}


def _is_media(block: AnyBlock | None) -> bool:
    return isinstance(block, Block) and block.media is not None


def _extras(items: list[Any], held: Held) -> list[Any]:
    extras = [
        _extra(item, held[index]) if index in held else [item, False]
        for index, item in enumerate(items)
    ]
    return extras if any(extras) else []


def _items(extras: list[Any], blocks: Sequence[AnyBlock]) -> list[Any]:
    if not extras:
        return [item_of(block) for block in blocks]
    waiting = iter(blocks)
    items: list[Any] = []
    for extra in extras:
        match extra:
            case [item, made]:
                items.append(item)
                if made:
                    next(waiting)
            case _:
                items.append(item_of(next(waiting), extra))
    return items


def _extra(item: Item, block: AnyBlock) -> Item | list[Any]:
    if block.native is not None:
        return {}
    match block:
        case ToolCall():
            return _without(item, _CALL)
        case ToolResult(content=str()):
            told = isinstance(item.get("content"), str)
            return _without(item, _RESULT) if told else [item, True]
        case ToolResult(content=tuple(parts)):
            extra = _without(item, _RESULT)
            inner = [_part_extra(*pair) for pair in zip(item["content"], parts, strict=True)]
            return extra | ({"content": inner} if any(inner) else {})
        case Block(media=Media() as media):
            return _part_extra(item, media)
        case _:
            return _without(item, _TEXT) if item.get("text") == block.text else [item, True]


def _part_extra(item: Item, part: Part) -> Item:
    match part:
        case Text():
            return _without(item, _TEXT)
        case Media(type=what, mime=mime):
            source = {key: value for key, value in item["source"].items() if key != "data"}
            if part.url:
                source = item["source"]
            usual = source == {"type": "base64", "media_type": mime} and item["type"] == what
            return _without(item, frozenset({"type", "source"} if usual else {"type"})) | (
                {} if usual else {"source": source}
            )
        case _:
            return {}


def _part_item(part: Part, extra: Item) -> Item:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text, **extra}
        case Media():
            return {"type": part.type, **extra, "source": _source(part, extra.get("source"))}
        case NativePart():
            found: Item = json.loads(part.native.item)
            return found


def _source(media: Media, told: Item | None) -> Item:
    if media.url:
        return told or {"type": "url", "url": media.url}
    source = told or {"type": "base64", "media_type": media.mime}
    text = source["type"] == "text"
    return {**source, "data": media.data.decode() if text else base64_of(media.data)}


def _without(item: Item, fields: frozenset[str]) -> Item:
    if item.keys() == fields:
        return {}
    return {key: value for key, value in item.items() if key not in fields}

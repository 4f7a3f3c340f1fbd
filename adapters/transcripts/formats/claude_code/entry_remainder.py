"""Removes from an entry what its blocks hold, and restores the entry.

For each item of the content, the remainder holds what the block does not. It is usually empty, and
then the content is an empty list. An item without a block is kept whole, as a pair with false; an
item of which the block holds only a part is a pair with true.
"""

import json
from collections.abc import Sequence
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
from ..content.media_text import bytes_to_base64
from ..json_lines import SourceLine
from ..reading.fields import JsonDict

IndexedBlocks = dict[int, AnyBlock]
"""The blocks of a content, by item index."""

_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content"})


def remove_block_content(entry: JsonDict, line: SourceLine, held: IndexedBlocks) -> str:
    """Return the entry as JSON text, without what its blocks hold.

    `toolUseResult` repeats the content in the tool's own shape, often at many times its size: only
    the sub-agent's id is kept.
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
            rest["message"] = {**rest["message"], "content": _item_remainders(items, held)}
        case {"attachment": {"prompt": list(items)}}:
            rest["attachment"] = {**rest["attachment"], "prompt": _item_remainders(items, held)}
        case {"attachment": {"content": {"file": {"base64": str()} as file} as content}} if (
            _is_media(held.get(0))
        ):
            emptied = {**content, "file": {**file, "base64": ""}}
            rest["attachment"] = {**rest["attachment"], "content": emptied}
        case _:
            pass
    return line.to_json(rest)


def restore_claude_entry(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict:
    """Return the whole entry."""
    match rest:
        case {"message": {"content": ""}}:
            rest["message"]["content"] = blocks[0].text
        case {"message": {"content": list(extras)}}:
            rest["message"]["content"] = _restore_items(extras, blocks)
        case {"attachment": {"prompt": list(extras)}}:
            rest["attachment"]["prompt"] = _restore_items(extras, blocks)
        case {"attachment": {"content": {"file": {"base64": ""} as file}}}:
            if isinstance(blocks[0], Block) and blocks[0].media:
                file["base64"] = bytes_to_base64(blocks[0].media.data)
        case _:
            pass
    return rest


def block_to_item(block: AnyBlock, extra: JsonDict | None = None) -> JsonDict:
    """Return a block as an item of a message's content."""
    more = dict(extra or {})
    if block.native is not None:
        found: JsonDict = json.loads(block.native.item)
        return found
    match block:
        case ToolCall(tool_call_id=id, name=name):
            called = json.loads(block.arguments)
            return {"type": "tool_use", "id": id, "name": name, "input": called, **more}
        case ToolResult(tool_call_id=id, content=content):
            inner = more.pop("content", None) or [{}] * len(content)
            if not isinstance(content, str):
                parts = zip(content, inner, strict=True)
                content = [_restore_part(part, one) for part, one in parts]  # type: ignore[assignment]
            return {"type": "tool_result", "tool_use_id": id, "content": content, **more}
        case Block(media=Media() as media):
            return _restore_part(media, more)
        case _:
            return {"type": "text", "text": block.text, **more}


def _is_media(block: AnyBlock | None) -> bool:
    return isinstance(block, Block) and block.media is not None


def _item_remainders(items: list[Any], held: IndexedBlocks) -> list[Any]:
    extras = [
        _item_remainder(item, held[index]) if index in held else [item, False]
        for index, item in enumerate(items)
    ]
    return extras if any(extras) else []


def _restore_items(extras: list[Any], blocks: Sequence[AnyBlock]) -> list[Any]:
    if not extras:
        return [block_to_item(block) for block in blocks]
    waiting = iter(blocks)
    items: list[Any] = []
    for extra in extras:
        match extra:
            case [item, made]:
                items.append(item)
                if made:
                    next(waiting)
            case _:
                items.append(block_to_item(next(waiting), extra))
    return items


def _item_remainder(item: JsonDict, block: AnyBlock) -> JsonDict | list[Any]:
    if block.native is not None:
        return {}
    match block:
        case ToolCall():
            return _drop_fields(item, _CALL)
        case ToolResult(content=str()):
            told = isinstance(item.get("content"), str)
            return _drop_fields(item, _RESULT) if told else [item, True]
        case ToolResult(content=tuple(parts)):
            extra = _drop_fields(item, _RESULT)
            inner = [_part_remainder(*pair) for pair in zip(item["content"], parts, strict=True)]
            return extra | ({"content": inner} if any(inner) else {})
        case Block(media=Media() as media):
            return _part_remainder(item, media)
        case _:
            return _drop_fields(item, _TEXT) if item.get("text") == block.text else [item, True]


def _part_remainder(item: JsonDict, part: ResultPart) -> JsonDict:
    match part:
        case Text():
            return _drop_fields(item, _TEXT)
        case Media(type=what, mime=mime):
            source = {key: value for key, value in item["source"].items() if key != "data"}
            if part.url:
                source = item["source"]
            usual = source == {"type": "base64", "media_type": mime} and item["type"] == what
            return _drop_fields(item, frozenset({"type", "source"} if usual else {"type"})) | (
                {} if usual else {"source": source}
            )
        case _:
            return {}


def _restore_part(part: ResultPart, extra: JsonDict) -> JsonDict:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text, **extra}
        case Media():
            return {"type": part.type, **extra, "source": _media_source(part, extra.get("source"))}
        case NativePart():
            found: JsonDict = json.loads(part.native.item)
            return found


def _media_source(media: Media, told: JsonDict | None) -> JsonDict:
    if media.url:
        return told or {"type": "url", "url": media.url}
    source = told or {"type": "base64", "media_type": media.mime}
    text = source["type"] == "text"
    return {**source, "data": media.data.decode() if text else bytes_to_base64(media.data)}


def _drop_fields(item: JsonDict, fields: frozenset[str]) -> JsonDict:
    if item.keys() == fields:
        return {}
    return {key: value for key, value in item.items() if key not in fields}

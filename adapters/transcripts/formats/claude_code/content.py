"""Converts the content items of Claude Code messages to blocks, and restores entries from blocks.

For each item of the content, the remainder of an entry holds what the block does not. It is usually
empty, and then the content is an empty list. An item without a block is kept whole, as a pair with
false; an item of which the block holds only a part is a pair with true.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

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
from ..fields import JsonDict, drop_fields, get_field, require_field, require_name, require_type
from ..json_lines import SourceLine
from ..media_text import bytes_to_base64, require_base64
from .entries import classify_user_text

CLAUDE_CODE_PROVIDER = "anthropic"

_MediaKind = Literal["image", "document"]


class UnknownItemError(ValueError):
    """An item of an unknown type."""


def read_user_item(entry: JsonDict, item: Any, line: SourceLine) -> AnyBlock:
    match require_type(item):
        case "text":
            text = require_field(item, "text", str)
            return Block(kind=classify_user_text(entry, text), text=text)
        case "image" | "document" as what:
            return _read_media_block(item, what, line)
        case "tool_result":
            return ToolResult(
                tool_call_id=require_name(item, "tool_use_id"),
                content=_read_result_content(item, line),
                is_error=get_field(item, "is_error", bool) or False,
            )
        case unknown:
            raise UnknownItemError(unknown)


def read_assistant_item(entry: JsonDict, item: Any, line: SourceLine) -> AnyBlock:
    match require_type(item):
        case "text" if entry.get("isApiErrorMessage") is True:
            # Claude Code's own text after a provider error; no model saw it.
            return Block.note(require_field(item, "text", str), name="api_error")
        case "text":
            native = _make_native(item, line) if item.get("citations") else None
            return Block.assistant(require_field(item, "text", str), native=native)
        case "thinking":
            thought = require_field(item, "thinking", str)
            return Block.thinking(thought, native=_make_native(item, line))
        case "redacted_thinking":
            return Block.thinking("", native=_make_native(item, line))
        case "tool_use":
            # Keep the caller only if it was a program of the model's.
            direct = item.get("caller") in (None, {"type": "direct"})
            return ToolCall(
                tool_call_id=require_name(item, "id"),
                name=require_field(item, "name", str),
                arguments=line.to_json(require_field(item, "input", dict)),
                native=None if direct else _make_native(item, line),
            )
        case kind if kind.endswith(("_tool_use", "_tool_result")):
            # The provider ran this tool, and gets the call and its result back unchanged.
            return Block.assistant("", name=kind, native=_make_native(item, line))
        case unknown:
            raise UnknownItemError(unknown)


def _make_native(item: JsonDict, line: SourceLine) -> Native:
    return Native(provider=CLAUDE_CODE_PROVIDER, item=line.to_json(item))


def _read_result_content(item: JsonDict, line: SourceLine) -> str | tuple[ResultPart, ...]:
    content = item.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return tuple(_read_part(part, line) for part in require_field(item, "content", list))


def _read_part(part: Any, line: SourceLine) -> ResultPart:
    match require_type(part):
        case "text":
            return Text(text=require_field(part, "text", str))
        case "image" | "document" as what if media := _read_media(part, what):
            return media
        case _:
            return NativePart(native=_make_native(part, line))


def _read_media_block(item: JsonDict, what: _MediaKind, line: SourceLine) -> Block:
    media = _read_media(item, what)
    native = None if media else _make_native(item, line)
    return Block(kind=Kind(what), media=media, native=native, name=_read_title(item))


def _read_media(item: JsonDict, what: _MediaKind) -> Media | None:
    """Return the media; None for a file uploaded to the provider, whose bytes only it has."""
    source = require_field(item, "source", dict)
    match require_field(source, "type", str):
        case "base64":
            mime = require_field(source, "media_type", str)
            data = require_base64(require_field(source, "data", str), "source.data: ")
            content: JsonDict = {"mime": mime, "data": data}
        case "text":
            content = {"mime": "text/plain", "data": require_field(source, "data", str).encode()}
        case "url":
            mime = "application/pdf" if what == "document" else "image/*"
            content = {"mime": mime, "url": require_field(source, "url", str)}
        case _:
            return None
    return Media(type=what, name=_read_title(item), **content)


def _read_title(item: JsonDict) -> str | None:
    return get_field(item, "title", str)


IndexedBlocks = dict[int, AnyBlock]


def remove_block_content(entry: JsonDict, line: SourceLine, held: IndexedBlocks) -> str:
    """Return the entry as JSON text, without what its blocks hold.

    `toolUseResult` repeats the content in the tool's own shape, often at many times its size: only
    the sub-agent's id is kept.
    """
    rest = dict(entry)
    match rest.pop("toolUseResult", None):
        case {"agentId": str(agent)}:
            rest["toolUseResult"] = {"agentId": agent}
    match rest:
        case {"message": {"content": str(content)}}:
            if 0 in held and held[0].text == content:
                rest["message"] = {**rest["message"], "content": ""}
        case {"message": {"content": list(items)}}:
            rest["message"] = {**rest["message"], "content": _item_remainders(items, held)}
        case {"attachment": {"prompt": list(items)}}:
            rest["attachment"] = {**rest["attachment"], "prompt": _item_remainders(items, held)}
        case {"attachment": {"content": {"file": {"base64": str()} as file} as content}}:
            if isinstance(block := held.get(0), Block) and block.media:
                emptied = {**content, "file": {**file, "base64": ""}}
                rest["attachment"] = {**rest["attachment"], "content": emptied}
    return line.to_json(rest)


def restore_claude_entry(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict:
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
    return rest


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
            case [item, has_block]:
                items.append(item)
                if has_block:
                    next(waiting)
            case _:
                items.append(block_to_item(next(waiting), extra))
    return items


def _item_remainder(item: JsonDict, part: AnyBlock | ResultPart) -> JsonDict | list[Any]:
    """Return what the block, or the part of a result, does not hold of its item."""
    if not isinstance(part, (Text, Media)) and part.native is not None:
        return {}
    match part:
        case ToolCall():
            return drop_fields(item, "type", "id", "name", "input")
        case ToolResult(content=str()) if not isinstance(item.get("content"), str):
            return [item, True]
        case ToolResult(content=content):
            extra = drop_fields(item, "type", "tool_use_id", "content")
            if isinstance(content, str):
                return extra
            pairs = zip(item["content"], content, strict=True)
            inner = [_item_remainder(one, held) for one, held in pairs]
            return {**extra, "content": inner} if any(inner) else extra
        case (Media() as media) | Block(media=Media() as media):
            extra = drop_fields(item, "type")
            extra["source"] = drop_fields(item["source"], *(() if media.url else ("data",)))
            usual = {"type": "base64", "media_type": media.mime}
            if extra["source"] == usual and item["type"] == media.type:
                del extra["source"]
            return extra
        case _:
            return drop_fields(item, "type", "text") if item["text"] == part.text else [item, True]


def block_to_item(part: AnyBlock | ResultPart, extra: JsonDict | None = None) -> JsonDict:
    """Return the item of a block, or of a part of a result, with what the block does not hold."""
    if not isinstance(part, (Text, Media)) and part.native is not None:
        found: JsonDict = json.loads(part.native.item)
        return found
    more = dict(extra or {})
    match part:
        case ToolCall(tool_call_id=id, name=name, arguments=arguments):
            called = json.loads(arguments)
            return {"type": "tool_use", "id": id, "name": name, "input": called, **more}
        case ToolResult(tool_call_id=id, content=content):
            inner = more.pop("content", None) or [{}] * len(content)
            parts: Any = content
            if not isinstance(content, str):
                parts = [block_to_item(*pair) for pair in zip(content, inner, strict=True)]
            return {"type": "tool_result", "tool_use_id": id, "content": parts, **more}
        case (Media() as media) | Block(media=Media() as media):
            return {"type": media.type, **more, "source": _make_source(media, more.get("source"))}
        case _:
            return {"type": "text", "text": part.text, **more}


def _make_source(media: Media, source: JsonDict | None) -> JsonDict:
    if media.url:
        return source or {"type": "url", "url": media.url}
    source = source or {"type": "base64", "media_type": media.mime}
    is_text = source["type"] == "text"
    return {**source, "data": media.data.decode() if is_text else bytes_to_base64(media.data)}

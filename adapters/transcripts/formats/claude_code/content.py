"""Converts the content items of Claude Code messages to blocks."""

from typing import Any, Literal

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
from .....projections.rendering import sendable
from ..content import require_base64
from ..fields import JsonDict, get_field, require_field, require_name, require_type
from ..json_lines import SourceLine
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
    return Block(kind=BlockKind(what), media=media, native=native, name=_read_title(item))


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


def make_media_item(media: Media) -> JsonDict:
    """Return the item of an image or a document."""
    source = {"type": "url", "url": media.url} if media.url else _make_data_source(media)
    return {"type": media.type, "source": source}


def _make_data_source(media: Media) -> JsonDict:
    return {"type": "base64", "media_type": media.mime, "data": sendable.encode_base64(media)}

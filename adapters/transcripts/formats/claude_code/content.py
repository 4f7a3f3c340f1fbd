"""What the content of a Claude Code message becomes, item by item."""

from typing import Any, Literal

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    Native,
    NativePart,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from ..content.media_text import bytes_of
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, json_name, take, take_optional
from .entries import kind_of_user_text

PROVIDER = "anthropic"

What = Literal["image", "document"]


class UnheardError(ValueError):
    """An item of a type that this reader does not know."""


def user_item(entry: Item, item: Any, line: Line) -> AnyBlock:
    """One item of a user entry's content."""
    match _type_of(item):
        case "text":
            text = take(item, "text", str)
            return Block(kind=kind_of_user_text(entry, text), text=text)
        case "image" | "document" as what:
            return _media_block(item, what, line)
        case "tool_result":
            return ToolResult(
                tool_call_id=_id(item, "tool_use_id"),
                content=_result_content(item, line),
                is_error=take_optional(item, "is_error", bool) or False,
            )
        case unheard:
            raise UnheardError(unheard)


def assistant_item(entry: Item, item: Any, line: Line) -> AnyBlock:
    """One item of an assistant entry's content."""
    match _type_of(item):
        case "text" if entry.get("isApiErrorMessage") is True:
            # Claude Code's own words: the provider refused, and no model saw this.
            return Block.note(take(item, "text", str), name="api_error")
        case "text":
            native = _native(item, line) if item.get("citations") else None
            return Block.assistant(take(item, "text", str), native=native)
        case "thinking":
            thought = take(item, "thinking", str)
            return Block.thinking(thought, native=_native(item, line))
        case "redacted_thinking":
            return Block.thinking("", native=_native(item, line))
        case "tool_use":
            # Who called matters only where a program of the model's did.
            direct = item.get("caller") in (None, {"type": "direct"})
            return ToolCall(
                tool_call_id=_id(item, "id"),
                name=take(item, "name", str),
                arguments=line.json(take(item, "input", dict)),
                native=None if direct else _native(item, line),
            )
        case kind if kind.endswith(("_tool_use", "_tool_result")):
            # The provider ran the tool itself: call and result go back to it as they came.
            return Block.assistant("", name=kind, native=_native(item, line))
        case unheard:
            raise UnheardError(unheard)


def _type_of(item: Any) -> str:
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return take(item, "type", str)


def _id(item: Item, field: str) -> str:
    if found := take(item, field, str):
        return found
    raise MalformedError(f"{field}: expected an id, but it is empty")


def _native(item: Item, line: Line) -> Native:
    return Native(provider=PROVIDER, item=line.json(item))


def _result_content(item: Item, line: Line) -> str | tuple[Part, ...]:
    content = item.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return tuple(_part(part, line) for part in take(item, "content", list))


def _part(part: Any, line: Line) -> Part:
    match _type_of(part):
        case "text":
            return Text(text=take(part, "text", str))
        case "image" | "document" as what if media := _media(part, what):
            return media
        case _:
            return NativePart(native=_native(part, line))


def _media_block(item: Item, what: What, line: Line) -> Block:
    media = _media(item, what)
    native = None if media else _native(item, line)
    return Block(kind=Kind(what), media=media, native=native, name=_title(item))


def _media(item: Item, what: What) -> Media | None:
    """None where only the provider can find the bytes: a file that was uploaded to it."""
    source = take(item, "source", dict)
    match take(source, "type", str):
        case "base64":
            mime = take(source, "media_type", str)
            data = _bytes(take(source, "data", str))
            return Media(type=what, mime=mime, data=data, name=_title(item))
        case "text":
            data = take(source, "data", str).encode()
            return Media(type=what, mime="text/plain", data=data, name=_title(item))
        case "url":
            url = take(source, "url", str)
            mime = "application/pdf" if what == "document" else "image/*"
            return Media(type=what, mime=mime, url=url, name=_title(item))
        case _:
            return None


def _bytes(base64: str) -> bytes:
    data = bytes_of(base64)
    if data is None:
        raise MalformedError("source.data: not base64")
    return data


def _title(item: Item) -> str | None:
    return take_optional(item, "title", str)

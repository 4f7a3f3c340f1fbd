"""What a message of pi becomes, item by item, and what is left of the entry without that.

In what is left, each item that became a block is without its text, and one that could not be read
stands whole in a list of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, Part, Text, ToolCall, ToolResult
from ..content.media_text import base64_of, bytes_of
from ..json_lines import Line
from ..reading.fields import Item, MalformedError, json_name, take, take_optional
from .signatures import native_of

Made = tuple[Any, Item]
"""What an item became, and the item without it."""


@dataclass
class Content:
    """What an entry says, in blocks; the rest of the entry; and what could not be read."""

    rest: Item
    blocks: list[AnyBlock] = field(default_factory=list)
    problems: list[tuple[str, Any]] = field(default_factory=list)
    """What is wrong, and with which item."""

    def items(self, owner: Item, make: Callable[[Any, int], Made], within: str) -> list[Any]:
        """Make something of each item of `owner`'s content; leaves the content without it."""
        content = owner.get("content")
        if isinstance(content, str):
            owner["content"] = ""
            return [make({"type": "text", "text": content}, 0)[0]] if content else []
        made, left = [], list[Any]()
        for index, item in enumerate(take(owner, "content", list, within)):
            try:
                one, stub = make(item, index)
            except MalformedError as error:
                self.problems.append((f"{within}content[{index}]: {error}", item))
                left.append([item])
            else:
                made.append(one)
                left.append(stub)
        owner["content"] = left
        return made


def user_content(entry: Item, kind: Kind) -> Content:
    """Of a message of a person, or of one that has that role."""
    content, message = _opened(entry)
    content.blocks = content.items(message, lambda item, _: _shown(item, kind), "message.")
    return content


def custom_content(entry: Item, owner: str | None) -> Content:
    """Of a message that an extension added: the entry itself, or the message in it."""
    content, message = _opened(entry) if owner else (Content({**entry}), {})
    message = message if owner else content.rest
    name = take_optional(message, "customType", str)
    content.blocks = content.items(
        message, lambda item, _: _shown(item, Kind.DEVELOPER, name), "message." if owner else ""
    )
    return content


def assistant_content(entry: Item, line: Line, source_id: str) -> Content:
    """Of a model's message."""
    content, message = _opened(entry)
    api = message.get("api")
    content.blocks = content.items(
        message, lambda item, index: _said(item, api, line, f"{source_id}:{index}"), "message."
    )
    return content


def result_content(entry: Item) -> Content:
    """Of a tool's answer, which is one block."""
    content, message = _opened(entry)
    call = take(message, "toolCallId", str, "message.")
    if not call:
        raise MalformedError("message.toolCallId: expected an id, but it is empty")
    is_error = take_optional(message, "isError", bool, "message.") or False
    parts: list[Part] = content.items(message, lambda item, _: _part(item), "message.")
    said: str | tuple[Part, ...] = tuple(parts)
    match parts:
        case []:
            said = ""
        case [Text(text=text)]:
            said = text
        case _:
            pass
    content.blocks = [ToolResult(tool_call_id=call, content=said, is_error=is_error)]
    return content


def execution_content(entry: Item, command: str, how: str) -> Content:
    """Of what a person ran beside the conversation, and what came of it."""
    content, message = _opened(entry)
    ran = take(message, command, str, "message.")
    output = take(message, "output", str, "message.")
    before = f"{how} `{ran}`\n" + ("```\n" if output else "(no output)")
    after = "\n```" if output else ""
    code = take_optional(message, "exitCode", int, "message.")
    if message.get("cancelled") is True:
        after += "\n\n(cancelled)"
    elif code:
        after += f"\n\nIt ended with exit code {code}."
    if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
        after += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
    message["output"] = [len(before), len(after)]
    content.blocks = [Block.developer(before + output + after, name=command)]
    return content


def summary_content(entry: Item, name: str, lead: str, owner: str | None) -> Content:
    """Of a summary that stands for other messages: the entry itself, or the message in it."""
    content, message = _opened(entry) if owner else (Content({**entry}), {})
    message = message if owner else content.rest
    summary = take(message, "summary", str, owner or "")
    before, after = f"{lead}\n\n<summary>\n", "\n</summary>"
    message["summary"] = [len(before), len(after)]
    content.blocks = [Block.developer(before + summary + after, name=name)] if summary else []
    return content


def _opened(entry: Item) -> tuple[Content, Item]:
    message = {**take(entry, "message", dict)}
    return Content({**entry, "message": message}), message


def _type_of(item: Any) -> str:
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return take(item, "type", str)


def _shown(item: Any, kind: Kind, name: str | None = None) -> Made:
    match _type_of(item):
        case "text":
            return Block(kind=kind, text=take(item, "text", str), name=name), without(item, "text")
        case "image":
            made, stub = _image(item)
            if isinstance(made, str):
                return Block.developer(made, name="image"), stub
            return Block(kind=Kind.IMAGE, media=made, name=name), stub
        case unheard:
            raise MalformedError(f"type: {unheard!r} is not known")


def _part(item: Any) -> Made:
    match _type_of(item):
        case "text":
            return Text(text=take(item, "text", str)), without(item, "text")
        case "image":
            made, stub = _image(item)
            return (Text(text=made) if isinstance(made, str) else made), stub
        case unheard:
            raise MalformedError(f"type: {unheard!r} is not known")


def _said(item: Any, api: Any, line: Line, place: str) -> Made:
    match _type_of(item):
        case "text":
            return Block.assistant(take(item, "text", str)), without(item, "text")
        case "thinking":
            native, thought = native_of(item, api, line)
            # What stands there for a redacted thought is no thought, and stays where it is.
            said = item if item.get("redacted") is True else without(item, "thinking")
            stub = without(said, "thinkingSignature") if native else said
            return Block.thinking(thought, native=native), stub
        case "toolCall":
            call = ToolCall(
                tool_call_id=take_optional(item, "id", str) or place,
                name=take(item, "name", str),
                arguments=line.json(take(item, "arguments", dict)),
            )
            return call, without(item, "arguments")
        case unheard:
            raise MalformedError(f"type: {unheard!r} is not known")


def _image(item: Item) -> tuple[Media | str, Item]:
    data, mime = take(item, "data", str), take(item, "mimeType", str)
    if data.startswith("blob:"):
        return f"[an image that is kept outside the session: {data}]", item
    raw = bytes_of(data)
    if raw is None:
        raise MalformedError("data: expected base64")
    media = Media(type="image", mime=mime, data=raw)
    is_canonical = base64_of(raw) == data
    return media, without(item, "data") if is_canonical else item


def without(item: Item, *fields: str) -> Item:
    """The item without these fields."""
    return {name: value for name, value in item.items() if name not in fields}

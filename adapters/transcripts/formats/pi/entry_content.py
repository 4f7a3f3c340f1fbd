"""Converts the items of a pi message to blocks, and keeps the remainder of the entry.

In the remainder, each item that became a block has no text; items that could not be read are in a
separate list.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, ResultPart, Text, ToolCall, ToolResult
from ..content.media_text import base64_to_bytes, bytes_to_base64
from ..json_lines import SourceLine
from ..reading.fields import JsonDict, MalformedError, get_field, json_name, require_field
from .signatures import read_native

ConvertedItem = tuple[Any, JsonDict]
"""The result of converting an item, and the item without it."""


@dataclass
class EntryContent:
    """The blocks of an entry, its remainder, and the problems."""

    remainder: JsonDict
    blocks: list[AnyBlock] = field(default_factory=list)
    problems: list[tuple[str, Any]] = field(default_factory=list)

    def convert_items(
        self, owner: JsonDict, make: Callable[[Any, int], ConvertedItem], within: str
    ) -> list[Any]:
        """Convert each item of `owner`'s content, and remove the converted parts from it."""
        content = owner.get("content")
        if isinstance(content, str):
            owner["content"] = ""
            return [make({"type": "text", "text": content}, 0)[0]] if content else []
        made, left = [], list[Any]()
        for index, item in enumerate(require_field(owner, "content", list, within)):
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


def read_user_content(entry: JsonDict, kind: Kind) -> EntryContent:
    """Read a message in the user's role."""
    content, message = _begin_content(entry)
    content.blocks = content.convert_items(
        message, lambda item, _: _convert_input(item, kind), "message."
    )
    return content


def read_custom_content(entry: JsonDict, owner: str | None) -> EntryContent:
    """Read a message of an extension: the entry itself, or the message in it."""
    content, message = _begin_content(entry) if owner else (EntryContent({**entry}), {})
    message = message if owner else content.remainder
    name = get_field(message, "customType", str)
    content.blocks = content.convert_items(
        message,
        lambda item, _: _convert_input(item, Kind.DEVELOPER, name),
        "message." if owner else "",
    )
    return content


def read_assistant_content(entry: JsonDict, line: SourceLine, source_id: str) -> EntryContent:
    """Read a model's message."""
    content, message = _begin_content(entry)
    api = message.get("api")
    content.blocks = content.convert_items(
        message,
        lambda item, index: _convert_output(item, api, line, f"{source_id}:{index}"),
        "message.",
    )
    return content


def read_result_content(entry: JsonDict) -> EntryContent:
    """Read a tool's answer, which is one block."""
    content, message = _begin_content(entry)
    call = require_field(message, "toolCallId", str, "message.")
    if not call:
        raise MalformedError("message.toolCallId: expected an id, but it is empty")
    is_error = get_field(message, "isError", bool, "message.") or False
    parts: list[ResultPart] = content.convert_items(
        message, lambda item, _: _convert_part(item), "message."
    )
    said: str | tuple[ResultPart, ...] = tuple(parts)
    match parts:
        case []:
            said = ""
        case [Text(text=text)]:
            said = text
        case _:
            pass
    content.blocks = [ToolResult(tool_call_id=call, content=said, is_error=is_error)]
    return content


def read_execution_content(entry: JsonDict, command: str, how: str) -> EntryContent:
    """Read a command that the user ran, and its output."""
    content, message = _begin_content(entry)
    ran = require_field(message, command, str, "message.")
    output = require_field(message, "output", str, "message.")
    before = f"{how} `{ran}`\n" + ("```\n" if output else "(no output)")
    after = "\n```" if output else ""
    code = get_field(message, "exitCode", int, "message.")
    if message.get("cancelled") is True:
        after += "\n\n(cancelled)"
    elif code:
        after += f"\n\nIt ended with exit code {code}."
    if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
        after += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
    message["output"] = [len(before), len(after)]
    content.blocks = [Block.developer(before + output + after, name=command)]
    return content


def read_summary_content(entry: JsonDict, name: str, lead: str, owner: str | None) -> EntryContent:
    """Read a summary of other messages: the entry itself, or the message in it."""
    content, message = _begin_content(entry) if owner else (EntryContent({**entry}), {})
    message = message if owner else content.remainder
    summary = require_field(message, "summary", str, owner or "")
    before, after = f"{lead}\n\n<summary>\n", "\n</summary>"
    message["summary"] = [len(before), len(after)]
    content.blocks = [Block.developer(before + summary + after, name=name)] if summary else []
    return content


def _begin_content(entry: JsonDict) -> tuple[EntryContent, JsonDict]:
    message = {**require_field(entry, "message", dict)}
    return EntryContent({**entry, "message": message}), message


def _item_type(item: Any) -> str:
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return require_field(item, "type", str)


def _convert_input(item: Any, kind: Kind, name: str | None = None) -> ConvertedItem:
    match _item_type(item):
        case "text":
            return Block(kind=kind, text=require_field(item, "text", str), name=name), drop_fields(
                item, "text"
            )
        case "image":
            made, stub = _read_image(item)
            if isinstance(made, str):
                return Block.developer(made, name="image"), stub
            return Block(kind=Kind.IMAGE, media=made, name=name), stub
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _convert_part(item: Any) -> ConvertedItem:
    match _item_type(item):
        case "text":
            return Text(text=require_field(item, "text", str)), drop_fields(item, "text")
        case "image":
            made, stub = _read_image(item)
            return (Text(text=made) if isinstance(made, str) else made), stub
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _convert_output(item: Any, api: Any, line: SourceLine, place: str) -> ConvertedItem:
    match _item_type(item):
        case "text":
            return Block.assistant(require_field(item, "text", str)), drop_fields(item, "text")
        case "thinking":
            native, thought = read_native(item, api, line)
            # The text of a redacted thought is only a placeholder, and stays there.
            said = item if item.get("redacted") is True else drop_fields(item, "thinking")
            stub = drop_fields(said, "thinkingSignature") if native else said
            return Block.thinking(thought, native=native), stub
        case "toolCall":
            call = ToolCall(
                tool_call_id=get_field(item, "id", str) or place,
                name=require_field(item, "name", str),
                arguments=line.to_json(require_field(item, "arguments", dict)),
            )
            return call, drop_fields(item, "arguments")
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _read_image(item: JsonDict) -> tuple[Media | str, JsonDict]:
    data, mime = require_field(item, "data", str), require_field(item, "mimeType", str)
    if data.startswith("blob:"):
        return f"[an image that is kept outside the session: {data}]", item
    raw = base64_to_bytes(data)
    if raw is None:
        raise MalformedError("data: expected base64")
    media = Media(type="image", mime=mime, data=raw)
    is_canonical = bytes_to_base64(raw) == data
    return media, drop_fields(item, "data") if is_canonical else item


def drop_fields(item: JsonDict, *fields: str) -> JsonDict:
    return {name: value for name, value in item.items() if name not in fields}

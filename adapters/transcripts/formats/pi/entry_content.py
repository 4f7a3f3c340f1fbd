"""Converts the items of a pi message to blocks, and restores the entry from blocks and remainder.

In the remainder, each item that became a block has no text; items that could not be read are in a
separate list.
"""

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
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from ..fields import JsonDict, MalformedError, drop_fields, get_field, require_field, require_type
from ..json_lines import SourceLine, encode_line
from ..media_text import base64_to_bytes, bytes_to_base64
from ..outgoing import OutgoingEntry
from .entries import make_signature, read_native

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


def _convert_input(item: Any, kind: Kind, name: str | None = None) -> ConvertedItem:
    match require_type(item):
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
    match require_type(item):
        case "text":
            return Text(text=require_field(item, "text", str)), drop_fields(item, "text")
        case "image":
            made, stub = _read_image(item)
            return (Text(text=made) if isinstance(made, str) else made), stub
        case unknown:
            raise MalformedError(f"type: {unknown!r} is not known")


def _convert_output(item: Any, api: Any, line: SourceLine, place: str) -> ConvertedItem:
    match require_type(item):
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


TITLE_SLOT_BYTES = 256
"""The length of the line that oh-my-pi rewrites for each title."""


def restore_entry_line(entry: OutgoingEntry) -> bytes:
    if entry.remainder is None:
        return (entry.raw or "").encode() + b"\n"
    return encode_line(
        _fill_remainder(entry.remainder, [one.block for one in entry.outgoing_blocks])
    )


def make_title_slot(title: str, time: str) -> bytes:
    """Return the line before the header, whose constant length allows rewriting it in place."""
    while True:
        slot = {"type": "title", "v": 1, "title": title, "updatedAt": time, "pad": ""}
        if (short := TITLE_SLOT_BYTES - len(encode_line(slot))) >= 0:
            return encode_line({**slot, "pad": " " * short})
        title = title[:-1]


def _fill_remainder(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict:
    message = rest.get("message")
    owner = message if rest.get("type") == "message" and isinstance(message, dict) else rest
    for name in ("summary", "output"):
        match owner.get(name):
            case [int(before), int(after)]:
                text = blocks[0].text
                owner[name] = text[before : len(text) - after]
    pieces = _block_pieces(blocks)
    match owner.get("content"):
        case "":
            owner["content"] = getattr(next(pieces, None), "text", "")
        case list(stubs):
            owner["content"] = [_restore_item(stub, pieces) for stub in stubs]
    return rest


def _block_pieces(blocks: Sequence[AnyBlock]) -> Iterator[Any]:
    for block in blocks:
        match block:
            case ToolResult(content=str(text)):
                yield Text(text=text)
            case ToolResult(content=parts):
                yield from parts
            case _:
                yield block


def _restore_item(stub: Any, pieces: Iterator[Any]) -> Any:
    if isinstance(stub, list):
        return stub[0]  # an item that could not be read
    return stub | _piece_fields(stub, next(pieces))


def _piece_fields(stub: JsonDict, piece: Any) -> JsonDict:
    """Return the item's fields that the piece holds and the stub lacks."""
    held: JsonDict = {}
    match piece:
        case ToolCall():
            held = {"arguments": json.loads(piece.arguments)}
        case Block(media=Media(data=data)) | Media(data=data):
            held = {"data": bytes_to_base64(data)}
        case Block(native=Native() as native) if stub.get("type") == "thinking":
            held = {"thinking": piece.text, "thinkingSignature": make_signature(native)}
        case Block() if stub.get("type") == "thinking":
            held = {"thinking": piece.text}
        case Block() | Text() if stub.get("type") == "text":
            held = {"text": piece.text}
    return {name: value for name, value in held.items() if name not in stub}

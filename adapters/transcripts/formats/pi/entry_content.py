"""Converts the items of a pi message to blocks, and restores the entry from blocks and remainder.

In the remainder, each item that became a block has no text; items that could not be read are in a
separate list.
"""

import json
from collections.abc import Callable, Iterator, Sequence
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
from ..media_text import base64_to_bytes, bytes_to_base64, is_base64_of
from ..outgoing import OutgoingEntry
from .entries import make_signature_fields, read_native

ConvertedItem = tuple[Any, JsonDict]
"""The result of converting an item, and the item without it."""
BRANCH_LEAD = "What follows sums up a branch that the conversation came back from:"
SUMMARY_LEAD = "What follows sums up the conversation so far:"


class EntryContent:
    """The blocks of an entry, its remainder, and the problems."""

    def __init__(self, entry: JsonDict, *, is_message: bool) -> None:
        self.remainder = {**entry}
        self.owner = self.remainder
        """The object with the content: the entry itself, or the message in it."""
        self.within = ""
        if is_message:
            self.owner = self.remainder["message"] = {**require_field(entry, "message", dict)}
            self.within = "message."
        self.blocks: list[AnyBlock] = []
        self.problems: list[tuple[str, Any]] = []

    def read(self, role: str, user_kind: Kind, line: SourceLine, source_id: str) -> None:
        """Read a message of a known role; `user_kind` is the kind of a user's texts."""
        match role:
            case "user":
                self.blocks = self._convert_items(lambda item, _: _convert_input(item, user_kind))
            case "developer" | "custom" | "hookMessage":
                is_named = role != "developer"
                name = get_field(self.owner, "customType", str) if is_named else None
                self.blocks = self._convert_items(
                    lambda item, _: _convert_input(item, Kind.DEVELOPER, name)
                )
            case "assistant":
                api = self.owner.get("api")
                self.blocks = self._convert_items(
                    lambda item, index: _convert_output(item, api, line, f"{source_id}:{index}")
                )
            case "toolResult":
                self.blocks = [self._read_result()]
            case "bashExecution":
                self.blocks = [self._read_execution("command", "Ran")]
            case "pythonExecution":
                self.blocks = [self._read_execution("code", "Ran Python")]
            case "branchSummary":
                self.blocks = self._read_summary("branch_summary", BRANCH_LEAD)
            case "compactionSummary":
                self.blocks = self._read_summary("summary", SUMMARY_LEAD)

    def _require(self, field: str) -> str:
        return require_field(self.owner, field, str, self.within)

    def _convert_items(self, make: Callable[[Any, int], ConvertedItem]) -> list[Any]:
        """Convert each item of the content, and remove the converted parts from it."""
        content = self.owner.get("content")
        if isinstance(content, str):
            self.owner["content"] = ""
            return [make({"type": "text", "text": content}, 0)[0]] if content else []
        made, left = [], list[Any]()
        for index, item in enumerate(require_field(self.owner, "content", list, self.within)):
            try:
                one, stub = make(item, index)
            except MalformedError as error:
                self.problems.append((f"{self.within}content[{index}]: {error}", item))
                left.append([item])
            else:
                made.append(one)
                left.append(stub)
        self.owner["content"] = left
        return made

    def _read_result(self) -> ToolResult:
        """Read a tool's answer, which is one block."""
        call = self._require("toolCallId")
        if not call:
            raise MalformedError("message.toolCallId: expected an id, but it is empty")
        is_error = get_field(self.owner, "isError", bool, self.within) or False
        parts: list[ResultPart] = self._convert_items(lambda item, _: _convert_part(item))
        said: str | tuple[ResultPart, ...] = tuple(parts)
        match parts:
            case []:
                said = ""
            case [Text(text=text)]:
                said = text
        return ToolResult(tool_call_id=call, content=said, is_error=is_error)

    def _read_execution(self, field: str, how: str) -> Block:
        """Read a command that the user ran, and its output."""
        message = self.owner
        ran, output = self._require(field), self._require("output")
        before = f"{how} `{ran}`\n" + ("```\n" if output else "(no output)")
        after = "\n```" if output else ""
        code = get_field(message, "exitCode", int, self.within)
        if message.get("cancelled") is True:
            after += "\n\n(cancelled)"
        elif code:
            after += f"\n\nIt ended with exit code {code}."
        if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
            after += f"\n\n[The output was cut: all of it is in {message['fullOutputPath']}]"
        message["output"] = [len(before), len(after)]
        return Block.developer(before + output + after, name=field)

    def _read_summary(self, name: str, lead: str) -> list[AnyBlock]:
        """Read a summary of other messages."""
        summary = self._require("summary")
        before, after = f"{lead}\n\n<summary>\n", "\n</summary>"
        self.owner["summary"] = [len(before), len(after)]
        return [Block.developer(before + summary + after, name=name)] if summary else []


def _convert_input(item: Any, kind: Kind, name: str | None = None) -> ConvertedItem:
    part, stub = _convert_part(item)
    if isinstance(part, Media):
        return Block(kind=Kind.IMAGE, media=part, name=name), stub
    if item["type"] == "image":
        return Block.developer(part.text, name="image"), stub
    return Block(kind=kind, text=part.text, name=name), stub


def _convert_part(item: Any) -> tuple[Text | Media, JsonDict]:
    match require_type(item):
        case "text":
            return Text(text=require_field(item, "text", str)), drop_fields(item, "text")
        case "image":
            data, mime = require_field(item, "data", str), require_field(item, "mimeType", str)
            if data.startswith("blob:"):
                return Text(text=f"[an image that is kept outside the session: {data}]"), item
            raw = base64_to_bytes(data)
            if raw is None:
                raise MalformedError("data: expected base64")
            media = Media(type="image", mime=mime, data=raw)
            return media, drop_fields(item, "data") if is_base64_of(media, data) else item
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
            held = {"thinking": piece.text, **make_signature_fields(native)}
        case Block() if stub.get("type") == "thinking":
            held = {"thinking": piece.text}
        case Block() | Text() if stub.get("type") == "text":
            held = {"text": piece.text}
    return {name: value for name, value in held.items() if name not in stub}

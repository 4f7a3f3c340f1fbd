"""Restores response items from their blocks, and builds items for blocks from other sources."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import (
    AnyBlock,
    Block,
    Kind,
    Media,
    NativePart,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from .....projections.rendering import sendable
from .....projections.rendering.tool_calls import make_distinct_id, sanitize_tool_name
from ..fields import JsonDict
from ..media_text import bytes_to_base64, make_media_address
from ..outgoing import OutgoingBlock, OutgoingSession
from ..summary_mark import make_marked_text, make_summary_mark
from .entries import CODEX_PROVIDER

_CONTENT_ITEM_TYPES = frozenset({"message", "agent_message"})


def restore_line(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    """Return the original line; None if a part of it is gone."""
    payload = rest.get("payload", rest)
    item = _restore_item(payload, blocks)
    if item is None:
        return None
    return {**rest, "payload": item} if "payload" in rest else item


def find_native_item(block: AnyBlock) -> JsonDict | None:
    if block.native is None or block.native.provider != CODEX_PROVIDER:
        return None
    item = json.loads(block.native.item)
    return item if isinstance(item, dict) else None


def _restore_item(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    first = blocks[0]
    kind = rest.get("type")
    if kind in _CONTENT_ITEM_TYPES:
        return _restore_content(rest, blocks)
    if len(blocks) > 1:
        return None
    if kind is None and "content" not in rest and (own := find_native_item(first)) is not None:
        return {**own, **rest}
    match first:
        case ToolCall(tool_call_id=call, name=name, arguments=arguments):
            return _restore_call(rest, call, name, arguments)
        case ToolResult():
            return _restore_result(rest, first)
        case Block(media=Media(data=data)) if kind == "image_generation_call":
            return {**rest, "result": bytes_to_base64(data)}
        case Block(text=text) if kind is None:
            return {**rest, "content": text}  # another agent's message, on a line of its own
        case _:
            return None


def _restore_content(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict | None:
    texts = iter([block.text for block in blocks if not _media_in(block)])
    images = iter([media for block in blocks if (media := _media_in(block))])
    content: list[Any] = []
    for part in rest["content"]:
        if part["type"] == "input_image":
            image = next(images, None)
            if image is None:
                return None
            content.append({**part, "image_url": make_media_address(image)})
        elif "text" in part:
            content.append(part)
        else:
            text = next(texts, None)
            if text is None:
                return None
            content.append({**part, "text": text})
    return {**rest, "content": content}


def _media_in(block: AnyBlock) -> Media | None:
    return block.media if isinstance(block, Block) else None


def _restore_call(rest: JsonDict, call: str, name: str, arguments: str) -> JsonDict | None:
    match rest.get("type"):
        case "function_call":
            return {**rest, "name": name, "arguments": arguments, "call_id": call}
        case "local_shell_call":
            return {**rest, "action": json.loads(arguments)}
        case "tool_search_call":
            return {**rest, "arguments": json.loads(arguments)}
        case _:
            return None


def _restore_result(rest: JsonDict, result: ToolResult) -> JsonDict | None:
    content, output = result.content, rest.get("output")
    if rest.get("type") == "tool_search_output":
        return {**rest, "tools": json.loads(result.text)}
    if isinstance(content, str) and not isinstance(output, list):
        text = {**output, "content": content} if isinstance(output, dict) else content
        return {**rest, "call_id": result.tool_call_id, "output": text}
    if isinstance(content, tuple) and isinstance(output, list) and len(content) == len(output):
        parts = [*_restore_parts(content, output)]
        return {**rest, "call_id": result.tool_call_id, "output": parts}
    return None


def _restore_parts(content: tuple[ResultPart, ...], rests: list[Any]) -> Iterator[Any]:
    for part, rest in zip(content, rests, strict=True):
        match part:
            case Text(text=text):
                yield {**rest, "text": text}
            case Media():
                yield {**rest, "image_url": make_media_address(part)}
            case NativePart(native=native):
                yield json.loads(native.item)


MAX_CALL_ID_CHARACTERS = 64
MAX_TOOL_NAME_CHARACTERS = 64

_PAIRED_CALLS = frozenset({"function_call", "custom_tool_call"})
_FUNCTION, _CUSTOM = "function_call_output", "custom_tool_call_output"


class CodexItemBuilder:
    """A builder of items, which reports what a rollout cannot hold."""

    def __init__(self, outgoing: OutgoingSession) -> None:
        self.outgoing = outgoing
        self.taken: set[str] = set()
        """Ids of written calls."""
        self.ids: dict[str, str] = {}
        """Open calls that were written with another id."""
        self.answers: dict[str, tuple[str, bool]] = {}
        """The type of item that answers an open call, and whether the call was built here."""

    def note_original_call(self, call: ToolCall, item: JsonDict) -> None:
        self.taken.add(call.tool_call_id)
        is_custom = item.get("type") == "custom_tool_call"
        self.answers[call.tool_call_id] = (_CUSTOM if is_custom else _FUNCTION, False)

    def required_output_type(self, result: ToolResult) -> str | None:
        """Return the required type of an original result, if its call was not written unchanged."""
        kind, is_made_here = self.answers.pop(result.tool_call_id, (None, False))
        return kind if is_made_here else None

    def build_items(self, said: Sequence[OutgoingBlock]) -> Iterator[JsonDict]:
        """Yield the items of a message: one for input, one for each piece of a model's answer."""
        content: list[JsonDict] = []
        role = ""
        for one in said:
            speaker = _role_of(one.block)
            if content and speaker != role:
                yield _make_message(role, content)
                content = []
            role = speaker
            if role:
                content += self._build_input(one.block)
                if (own := find_native_item(one.block)) is not None:
                    yield own
            elif (item := self._build_item(one)) is not None:
                yield item
        if content:
            yield _make_message(role, content)

    def _build_input(self, block: AnyBlock) -> Iterator[JsonDict]:
        if not isinstance(block, Block) or find_native_item(block) is not None:
            return
        if block.text:
            yield {
                "type": "input_text",
                "text": make_marked_text(block),
                **make_summary_mark(block),
            }
        elif block.native and not block.media:
            self.outgoing.count_loss("items that only another provider understands")
        if block.media:
            yield self._build_media(block.media)

    def _build_media(self, found: Media) -> JsonDict:
        if found.type == "image":
            return {"type": "input_image", "image_url": make_media_address(found)}
        self.outgoing.count_loss("documents")  # documents become text at most
        return {
            "type": "input_text",
            "text": sendable.decode_text(found) or sendable.describe_media(found),
        }

    def _build_item(self, said: OutgoingBlock) -> JsonDict | None:
        block = said.block
        match block:
            case ToolCall():
                return self._build_call(said.position, block)
            case ToolResult():
                return self._build_result(block)
            case Block(kind=Kind.ARTIFACT):
                self.outgoing.count_loss("artifacts")
            case Block(kind=Kind.NOTE, origin=origin):
                is_raw = origin is not None and origin.entry is None
                what = "entries that only their own agent needs" if is_raw else "notes"
                self.outgoing.count_loss(what)
            case _:
                return self._build_model_text(block)
        return None

    def _build_model_text(self, block: Block) -> JsonDict | None:
        """Return an item for a model's text or thoughts."""
        own = find_native_item(block)
        if own is not None and own.get("type") not in _PAIRED_CALLS:
            return own
        if block.kind is Kind.THINKING:
            # A provider rejects a thought without its signature.
            self.outgoing.count_loss("thoughts of models of other providers")
        elif block.text:
            return _make_message("assistant", [{"type": "output_text", "text": block.text}])
        elif block.native:
            self.outgoing.count_loss("items that only another provider understands")
        return None

    def _build_call(self, position: int, call: ToolCall) -> JsonDict:
        id = make_distinct_id(call.tool_call_id, position, self.taken, MAX_CALL_ID_CHARACTERS)
        self.taken.add(id)
        if id != call.tool_call_id:
            self.ids[call.tool_call_id] = id
        own = find_native_item(call)
        if own is not None and own.get("type") == "custom_tool_call":
            self.answers[id] = (_CUSTOM, True)
            return {**own, "call_id": id}
        self.answers[id] = (_FUNCTION, True)
        name = sanitize_tool_name(call.name, MAX_TOOL_NAME_CHARACTERS)
        if name != call.name:
            self.outgoing.count_loss("names of tools as they were")
        return {
            "type": "function_call",
            "name": name,
            "arguments": call.arguments,
            "call_id": id,
        }

    def _build_result(self, result: ToolResult) -> JsonDict:
        id = self.ids.pop(result.tool_call_id, result.tool_call_id)
        kind, _ = self.answers.pop(id, (_FUNCTION, True))
        if result.is_error:
            self.outgoing.count_loss("marks of tool results that are errors")
        output: Any = result.content
        if not isinstance(output, str):
            output = [part for one in output if (part := self._build_part(one)) is not None]
        return {"type": kind, "call_id": id, "output": output}

    def _build_part(self, part: Text | Media | NativePart) -> JsonDict | None:
        match part:
            case Text(text=text):
                return {"type": "input_text", "text": text}
            case Media():
                return self._build_media(part)
            case NativePart(native=native) if native.provider == CODEX_PROVIDER:
                item = json.loads(native.item)
                return item if isinstance(item, dict) else None
            case _:
                self.outgoing.count_loss(
                    "parts of tool results that only another provider understands"
                )
                return None


def _role_of(block: AnyBlock) -> str:
    """Return the role of input; empty for the model's own blocks, and for notes."""
    match block:
        case Block(kind=Kind.DEVELOPER, name="summary"):
            return "user"
        case Block(kind=Kind.DEVELOPER):
            return "developer"
        case Block(kind=Kind.USER | Kind.IMAGE | Kind.DOCUMENT):
            return "user"
        case _:
            return ""


def _make_message(role: str, content: list[JsonDict]) -> JsonDict:
    return {"type": "message", "role": role, "content": content}

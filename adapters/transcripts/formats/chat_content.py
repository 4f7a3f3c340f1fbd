"""Reads and writes the content of chat messages as SWE-agent and similar agents keep them."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolResult
from .entry_steps import EntryBlocks, SourceImage, image_from_address, make_thinking_block
from .fields import JsonDict, MalformedError, json_name
from .json_lines import SourceLine
from .media_text import make_media_address
from .outgoing import OutgoingSession
from .placeholders import JsonPath
from .summary_mark import make_marked_text, make_summary_mark

_CACHE_MARK = "cache_control"


def read_contents(message: JsonDict) -> list[tuple[str | SourceImage, JsonPath]]:
    """Return the texts and images of a message, each with its path."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [(content, ("content",))] if content else []
    if not isinstance(content, list):
        raise MalformedError(f"content: expected text or a list, got {json_name(content)}")
    found: list[tuple[str | SourceImage, JsonPath]] = []
    for index, item in enumerate(content):
        match item:
            case {"type": "text", "text": str(text)}:
                if text:
                    found.append((text, ("content", index, "text")))
            case {"type": "image_url", "image_url": {"url": str(address)}}:
                at = ("content", index, "image_url", "url")
                found.append((image_from_address(address) or address, at))
            case _:
                raise MalformedError("content: expected texts and images")
    return found


def drop_cache_marks(message: Any) -> Any:
    """Return the message without its prompt cache marks, which move as the history grows."""
    if not isinstance(message, dict):
        return message
    plain = {name: value for name, value in message.items() if name != _CACHE_MARK}
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            {name: value for name, value in item.items() if name != _CACHE_MARK}
            if isinstance(item, dict)
            else item
            for item in content
        ]
    return plain


def add_message_blocks(pieces: EntryBlocks, kind: Kind, message: JsonDict) -> None:
    for value, at in read_contents(message):
        if isinstance(value, SourceImage):
            pieces.add_image(value, at)
        else:
            pieces.add_text(kind, value, at)


def add_thoughts(pieces: EntryBlocks, message: JsonDict, line: SourceLine) -> None:
    """Add the model's thoughts."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        for index, item in enumerate(signed):
            pieces.add_native(make_thinking_block(item, line), ("thinking_blocks", index))
    elif isinstance(thought := message.get("reasoning_content"), str):
        pieces.add_text(Kind.THINKING, thought, ("reasoning_content",))


def read_tool_calls(message: JsonDict) -> Iterator[tuple[int, JsonDict]]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise MalformedError(f"tool_calls: expected a list, got {json_name(calls)}")
    for index, call in enumerate(calls):
        match call:
            case {"id": str(id), "function": {"name": str(), "arguments": str()}} if id:
                yield index, call
            case _:
                raise MalformedError(f"tool_calls: call {index} has no id, name or arguments")


def make_chat_content(
    blocks: Sequence[AnyBlock], outgoing: OutgoingSession
) -> str | list[JsonDict]:
    """Return a message's content for blocks: a string if they are only text."""
    items: list[JsonDict] = []
    for block in blocks:
        match block:
            case Block(kind=Kind.IMAGE, media=Media() as media):
                items.append(_make_image(media))
            case Block(kind=Kind.DOCUMENT):
                outgoing.count_loss("documents")
            case Block(kind=Kind.THINKING):
                pass
            case Block() if block.text:
                items.append(
                    {"type": "text", "text": make_marked_text(block), **make_summary_mark(block)}
                )
            case Block():
                if block.native:
                    outgoing.count_loss("items that only their provider understands")
            case _:
                pass
    return _simplify_content(items)


def make_answer_content(result: ToolResult, outgoing: OutgoingSession) -> str | list[JsonDict]:
    """Return a message's content for a tool's answer."""
    if isinstance(result.content, str):
        return result.content
    items: list[JsonDict] = []
    for part in result.content:
        match part:
            case Text():
                items.append({"type": "text", "text": part.text})
            case Media(type="image"):
                items.append(_make_image(part))
            case Media():
                outgoing.count_loss("documents in tool results")
            case NativePart():
                outgoing.count_loss("parts of tool results that only their provider understands")
    return _simplify_content(items)


def make_thought_fields(blocks: Sequence[AnyBlock], outgoing: OutgoingSession) -> JsonDict:
    """Return the model's thoughts as fields of its message."""
    signed: list[Any] = []
    plain: list[str] = []
    for block in blocks:
        if block.kind is not Kind.THINKING:
            continue
        if block.native and block.native.provider == "anthropic":
            signed.append(json.loads(block.native.item))
        elif block.native:
            outgoing.count_loss("items that only their provider understands")
        elif block.text:
            plain.append(block.text)
    if signed and plain:
        outgoing.count_loss("thoughts without a signature beside signed ones", len(plain))
    if signed:
        return {"thinking_blocks": signed}
    return {"reasoning_content": "\n\n".join(plain)} if plain else {}


def _make_image(media: Media) -> JsonDict:
    return {"type": "image_url", "image_url": {"url": make_media_address(media)}}


def _simplify_content(items: list[JsonDict]) -> str | list[JsonDict]:
    if not items:
        return ""
    alone = len(items) == 1 and items[0].keys() == {"type", "text"}
    return str(items[0]["text"]) if alone else items

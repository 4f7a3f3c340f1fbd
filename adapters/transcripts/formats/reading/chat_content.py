"""Reads the content of chat messages as SWE-agent and similar agents keep them."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Kind
from ..content.placeholders import JsonPath
from ..json_lines import SourceLine
from .entry_blocks import EntryBlocks, SourceImage, image_from_address, make_thinking_block
from .fields import JsonDict, MalformedError, json_name

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

"""The content of messages in the chat form that SWE-agent and its like keep: texts and images."""

from collections.abc import Iterator
from typing import Any

from .....domain.blocks import Kind
from ..content.holes import At
from ..json_lines import Line
from .fields import Item, MalformedError, json_name
from .pieces import Picture, Pieces, picture_of, thinking_block

_MARK = "cache_control"


def contents(message: Item) -> list[tuple[str | Picture, At]]:
    """The texts and images of a message, each with its place."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [(content, ("content",))] if content else []
    if not isinstance(content, list):
        raise MalformedError(f"content: expected text or a list, got {json_name(content)}")
    found: list[tuple[str | Picture, At]] = []
    for index, item in enumerate(content):
        match item:
            case {"type": "text", "text": str(text)}:
                if text:
                    found.append((text, ("content", index, "text")))
            case {"type": "image_url", "image_url": {"url": str(address)}}:
                at = ("content", index, "image_url", "url")
                found.append((picture_of(address) or address, at))
            case _:
                raise MalformedError("content: expected texts and images")
    return found


def without_marks(message: Any) -> Any:
    """The message without its marks for the prompt cache: they move on as the history grows."""
    if not isinstance(message, dict):
        return message
    plain = {name: value for name, value in message.items() if name != _MARK}
    if isinstance(content := plain.get("content"), list):
        plain["content"] = [
            {name: value for name, value in item.items() if name != _MARK}
            if isinstance(item, dict)
            else item
            for item in content
        ]
    return plain


def say(pieces: Pieces, kind: Kind, message: Item) -> None:
    """All that a message says, as blocks."""
    for value, at in contents(message):
        if isinstance(value, Picture):
            pieces.picture(value, at)
        else:
            pieces.text(kind, value, at)


def think(pieces: Pieces, message: Item, line: Line) -> None:
    """What the model thought before it said it."""
    signed = message.get("thinking_blocks")
    if isinstance(signed, list) and signed and all(isinstance(item, dict) for item in signed):
        for index, item in enumerate(signed):
            pieces.signed(thinking_block(item, line), ("thinking_blocks", index))
    elif isinstance(thought := message.get("reasoning_content"), str):
        pieces.text(Kind.THINKING, thought, ("reasoning_content",))


def tool_calls(message: Item) -> Iterator[tuple[int, Item]]:
    """The calls of a message, each with its index."""
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

"""The content of messages in the chat form that SWE-agent and its like keep, written."""

import json
from collections.abc import Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolResult
from ..content.media_text import address_of
from ..outgoing import Outgoing
from ..reading.fields import Item
from ..summary_mark import mark_of
from .as_text import marked_text


def written(blocks: Sequence[AnyBlock], outgoing: Outgoing) -> str | list[Item]:
    """What blocks say, as a message's content: plain text where that is all."""
    items: list[Item] = []
    for block in blocks:
        match block:
            case Block(kind=Kind.IMAGE, media=Media() as media):
                items.append(_image(media))
            case Block(kind=Kind.DOCUMENT):
                outgoing.lose("documents")
            case Block(kind=Kind.THINKING):
                pass
            case Block() if block.text:
                items.append({"type": "text", "text": marked_text(block), **mark_of(block)})
            case Block():
                if block.native:
                    outgoing.lose("items that only their provider understands")
            case _:
                pass
    return _plain(items)


def answered(result: ToolResult, outgoing: Outgoing) -> str | list[Item]:
    """What a tool answered, as a message's content."""
    if isinstance(result.content, str):
        return result.content
    items: list[Item] = []
    for part in result.content:
        match part:
            case Text():
                items.append({"type": "text", "text": part.text})
            case Media(type="image"):
                items.append(_image(part))
            case Media():
                outgoing.lose("documents in tool results")
            case NativePart():
                outgoing.lose("parts of tool results that only their provider understands")
    return _plain(items)


def thoughts(blocks: Sequence[AnyBlock], outgoing: Outgoing) -> Item:
    """What the model thought, as fields of its message."""
    signed: list[Any] = []
    plain: list[str] = []
    for block in blocks:
        if block.kind is not Kind.THINKING:
            continue
        if block.native and block.native.provider == "anthropic":
            signed.append(json.loads(block.native.item))
        elif block.native:
            outgoing.lose("items that only their provider understands")
        elif block.text:
            plain.append(block.text)
    if signed and plain:
        outgoing.lose("thoughts without a signature beside signed ones", len(plain))
    if signed:
        return {"thinking_blocks": signed}
    return {"reasoning_content": "\n\n".join(plain)} if plain else {}


def _image(media: Media) -> Item:
    return {"type": "image_url", "image_url": {"url": address_of(media)}}


def _plain(items: list[Item]) -> str | list[Item]:
    if not items:
        return ""
    alone = len(items) == 1 and items[0].keys() == {"type", "text"}
    return str(items[0]["text"]) if alone else items

"""Writes the content of chat messages as SWE-agent and similar agents keep them."""

import json
from collections.abc import Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind, Media, NativePart, Text, ToolResult
from ..content.media_text import make_media_address
from ..outgoing import OutgoingSession
from ..reading.fields import JsonDict
from ..summary_mark import make_summary_mark
from .marked_text import make_marked_text


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

"""Puts an entry of pi's own back together: what its blocks hold, into the rest of it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, Native, Text, ToolCall, ToolResult
from ..content.media_text import base64_of
from ..outgoing import Entry
from ..reading.fields import Item
from .entries import dumped
from .signatures import signature_of

SLOT_BYTES = 256
"""How long the line is that oh-my-pi writes anew for every title."""


def line_of(entry: Entry) -> bytes:
    """The entry as the line that it was."""
    if entry.rest is None:
        return (entry.raw or "").encode() + b"\n"
    return dumped(_filled(entry.rest, [one.block for one in entry.said]))


def title_slot(title: str, time: str) -> bytes:
    """The line before the header, always of one length: it is written over in place."""
    while True:
        slot = {"type": "title", "v": 1, "title": title, "updatedAt": time, "pad": ""}
        if (short := SLOT_BYTES - len(dumped(slot))) >= 0:
            return dumped({**slot, "pad": " " * short})
        title = title[:-1]


def _filled(rest: Item, blocks: Sequence[AnyBlock]) -> Item:
    message = rest.get("message")
    owner = message if rest.get("type") == "message" and isinstance(message, dict) else rest
    for name in ("summary", "output"):
        match owner.get(name):
            case [int(before), int(after)]:
                text = blocks[0].text
                owner[name] = text[before : len(text) - after]
            case _:
                pass
    pieces = _pieces(blocks)
    match owner.get("content"):
        case "":
            owner["content"] = getattr(next(pieces, None), "text", "")
        case list(stubs):
            owner["content"] = [_item(stub, pieces) for stub in stubs]
        case _:
            pass
    return rest


def _pieces(blocks: Sequence[AnyBlock]) -> Iterator[Any]:
    for block in blocks:
        match block:
            case ToolResult(content=str(text)):
                yield Text(text=text)
            case ToolResult(content=parts):
                yield from parts
            case _:
                yield block


def _item(stub: Any, pieces: Iterator[Any]) -> Any:
    if isinstance(stub, list):
        return stub[0]  # it could not be read, and became nothing
    return stub | _held(stub, next(pieces))


def _held(stub: Item, piece: Any) -> Item:
    """What the piece holds of the item, and the stub does not say itself."""
    held: Item = {}
    match piece:
        case ToolCall():
            held = {"arguments": json.loads(piece.arguments)}
        case Block(media=Media(data=data)) | Media(data=data):
            held = {"data": base64_of(data)}
        case Block(native=Native() as native) if stub.get("type") == "thinking":
            held = {"thinking": piece.text, "thinkingSignature": signature_of(native)}
        case Block() if stub.get("type") == "thinking":
            held = {"thinking": piece.text}
        case Block() | Text() if stub.get("type") == "text":
            held = {"text": piece.text}
        case _:
            pass
    return {name: value for name, value in held.items() if name not in stub}

"""Restores pi entries from their blocks and remainders."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, Native, Text, ToolCall, ToolResult
from ..content.media_text import bytes_to_base64
from ..outgoing import OutgoingEntry
from ..reading.fields import JsonDict
from .entries import encode_entry
from .signatures import make_signature

TITLE_SLOT_BYTES = 256
"""The length of the line that oh-my-pi rewrites for each title."""


def restore_entry_line(entry: OutgoingEntry) -> bytes:
    if entry.remainder is None:
        return (entry.raw or "").encode() + b"\n"
    return encode_entry(
        _fill_remainder(entry.remainder, [one.block for one in entry.outgoing_blocks])
    )


def make_title_slot(title: str, time: str) -> bytes:
    """Return the line before the header, whose constant length allows rewriting it in place."""
    while True:
        slot = {"type": "title", "v": 1, "title": title, "updatedAt": time, "pad": ""}
        if (short := TITLE_SLOT_BYTES - len(encode_entry(slot))) >= 0:
            return encode_entry({**slot, "pad": " " * short})
        title = title[:-1]


def _fill_remainder(rest: JsonDict, blocks: Sequence[AnyBlock]) -> JsonDict:
    message = rest.get("message")
    owner = message if rest.get("type") == "message" and isinstance(message, dict) else rest
    for name in ("summary", "output"):
        match owner.get(name):
            case [int(before), int(after)]:
                text = blocks[0].text
                owner[name] = text[before : len(text) - after]
            case _:
                pass
    pieces = _block_pieces(blocks)
    match owner.get("content"):
        case "":
            owner["content"] = getattr(next(pieces, None), "text", "")
        case list(stubs):
            owner["content"] = [_restore_item(stub, pieces) for stub in stubs]
        case _:
            pass
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
        case _:
            pass
    return {name: value for name, value in held.items() if name not in stub}

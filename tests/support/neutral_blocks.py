"""The neutral blocks of the vectors as cutbank's own: translated, nothing is computed."""

from collections.abc import Mapping
from typing import Any

from cutbank import Block, BlockKind, Text, ToolCall, ToolResult
from cutbank.domain.blocks import AnyBlock, Media, ResultPart
from cutbank.domain.compaction_events import Digest

Neutral = dict[str, Any]

IMAGE = Media(type="image", mime="image/png", data=b"\x89PNG")
KINDS = {"turn_header": BlockKind.NOTE}
"""Neutral kinds whose name is another one here; a header's block is named after it."""


def block_of(neutral: Neutral) -> AnyBlock:
    """One neutral block as it would stand in a log; images of a prompt are blocks of their own."""
    meta, kind = neutral["meta"], neutral["kind"]
    message = meta.get("group")
    call = neutral["tool_call_id"] or "none"
    if kind == "tool_call":
        arguments = meta.get("args") or {}
        return ToolCall(
            tool_call_id=call, name=neutral["tool_name"], arguments=arguments, message_id=message
        )
    if kind == "tool_result":
        images: tuple[ResultPart, ...] = (IMAGE,) * meta.get("images", 0)
        content = (Text(text=neutral["text"]), *images) if images else neutral["text"]
        return ToolResult(tool_call_id=call, content=content)
    return Block(
        kind=KINDS.get(kind) or BlockKind(kind),
        text=neutral["text"],
        name=meta.get("path") or meta.get("author") or ("turn.header" if kind in KINDS else None),
        message_id=message or (neutral["id"] if meta.get("images") else None),
    )


def images_of(neutral: Neutral) -> list[Block]:
    if neutral["kind"] != "user":
        return []
    image = Block(kind=BlockKind.IMAGE, media=IMAGE, message_id=neutral["id"])
    return [image] * int(neutral["meta"].get("images", 0))


def turn_of(neutral: Neutral) -> int:
    """Turns are numbered from 1; what belongs to none is of turn 0."""
    name = neutral["turn_id"] or "0"
    return int(name.rpartition("_")[2])


def is_cut_off(neutral: Neutral) -> bool:
    meta = neutral["meta"]
    return "stop_reason" in meta and meta["stop_reason"] is None


def digest_of(summary: Mapping[str, Any]) -> Digest:
    files = summary["meta"].get("details") or {}
    return Digest(
        read_files=tuple(files.get("read_files", ())),
        modified_files=tuple(files.get("modified_files", ())),
    )

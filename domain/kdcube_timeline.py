"""Reads blocks as entries of kdcube's timeline: their types, authors, paths and texts."""

import json
from json.encoder import encode_basestring_ascii
from typing import Any

from .blocks import PROMPT_KINDS, AnyBlock, Block, BlockKind, ToolCall
from .item import WindowItem
from .window import Window

TIMELINE_FORMAT = "kdcube"
"""The format of blocks whose origin keeps their entry of the timeline."""

SUMMARY_TYPE, HEADER_TYPE, PROMPT_TYPE = "conv.range.summary", "turn.header", "user.prompt"
CALL_TYPE, RESULT_TYPE, COMPLETION_TYPE = (
    "react.tool.call",
    "react.tool.result",
    "assistant.completion",
)

_TYPE_BY_KIND = {
    BlockKind.USER: PROMPT_TYPE,
    BlockKind.IMAGE: "user.attachment",
    BlockKind.DOCUMENT: "user.attachment",
    BlockKind.ASSISTANT: COMPLETION_TYPE,
    BlockKind.THINKING: "react.thinking",
    BlockKind.TOOL_CALL: CALL_TYPE,
    BlockKind.TOOL_RESULT: RESULT_TYPE,
    BlockKind.ARTIFACT: "react.artifact",
    BlockKind.NOTE: "react.note",
    BlockKind.DEVELOPER: "system.message",
}
_AUTHOR_BY_KIND = {BlockKind.ASSISTANT: "assistant", BlockKind.DEVELOPER: "system"} | dict.fromkeys(
    PROMPT_KINDS, "user"
)


def read_attributes(block: AnyBlock) -> dict[str, Any]:
    """Return the entry that a block was imported from; empty if it was not imported."""
    origin = block.origin
    if origin is None or origin.format != TIMELINE_FORMAT or origin.entry is None:
        return {}
    return _parse_entry(origin.entry)


def find_type(block: AnyBlock) -> str:
    return str(read_attributes(block).get("type") or _TYPE_BY_KIND[block.kind])


def find_author(block: AnyBlock) -> str:
    """Return the author in lower case; empty if unknown."""
    known = read_attributes(block)
    author = known.get("author") or known.get("role") if known else _AUTHOR_BY_KIND.get(block.kind)
    return str(author or "").strip().lower()


def find_turn(item: WindowItem) -> str:
    return str(
        read_attributes(item.block).get("turn_id") or (f"turn_{item.turn}" if item.turn else "")
    )


def describe_entry(item: WindowItem) -> dict[str, str]:
    """Return what the timeline says of a block besides its text; empty for what it does not say."""
    block, known = item.block, read_attributes(item.block)
    call = known.get("call_id") if isinstance(block, Block) else block.tool_call_id
    return {
        "type": find_type(block),
        "author": find_author(block),
        "hidden": "true" if is_hidden_entry(block) else "",
        "turn": find_turn(item),
        "ts": str(known.get("ts") or (block.origin.time if block.origin else None) or ""),
        "path": str(known.get("path") or ""),
        "mime": str(known.get("mime") or ""),
        "call_id": str(call or ""),
    }


def is_hidden_entry(block: AnyBlock) -> bool:
    known = read_attributes(block)
    return bool(known.get("hidden") or _read_meta(known).get("hidden"))


def find_replacement(block: AnyBlock) -> str:
    """Return the text that a hidden block shows in its place; empty if it shows nothing."""
    known = read_attributes(block)
    return str(known.get("replacement_text") or _read_meta(known).get("replacement_text") or "")


def render_entry_text(block: AnyBlock) -> str:
    """Return the block's text; for a tool call, the whole request in the timeline's JSON."""
    if not isinstance(block, ToolCall):
        return block.text
    name, call = encode_basestring_ascii(block.name), encode_basestring_ascii(block.tool_call_id)
    return (
        f'{{"tool_id": {name}, "tool_call_id": {call}'
        f', "params": {_escape_to_ascii(block.arguments)}}}'
    )


def render_shown_text(block: AnyBlock) -> str:
    """Return what a reader sees: the replacement text if the block is hidden, or else its text."""
    if block.origin is None:
        return block.text if isinstance(block, Block) else render_entry_text(block)
    if not is_hidden_entry(block):
        return render_entry_text(block)
    replacement = find_replacement(block)
    return replacement if replacement.strip() else render_entry_text(block)


def map_replaced_texts(window: Window) -> dict[int, str]:
    """Return the texts by position that replace blocks now or from the next boundary on."""
    texts = dict(window.earlier_replacements)
    texts |= {at: text for at, text in window.hides.items() if text and not text.isspace()}
    cut = window.earlier_trims
    for item in window.items if cut else ():
        if (trim := cut.get(item.position)) and trim.head + trim.tail < len(item.block.text):
            text = item.block.text
            texts[item.position] = text[: trim.head] + (text[-trim.tail :] if trim.tail else "")
    return texts


def is_summary_entry(block: AnyBlock) -> bool:
    return block.origin is not None and find_type(block) == SUMMARY_TYPE


def is_turn_start(block: AnyBlock) -> bool:
    """Check whether the block is a turn's header or a user's message."""
    if block.origin is None:
        return block.kind in PROMPT_KINDS
    return find_type(block) in {HEADER_TYPE, PROMPT_TYPE} or find_author(block) == "user"


def _read_meta(known: dict[str, Any]) -> dict[str, Any]:
    meta = known.get("meta")
    return meta if isinstance(meta, dict) else {}


def _parse_entry(entry: str) -> dict[str, Any]:
    try:
        known = json.loads(entry)
    except (ValueError, RecursionError):
        return {}  # an import may keep any text here
    return known if isinstance(known, dict) else {}


def _escape_to_ascii(arguments: str) -> str:
    if arguments.isascii():
        return arguments
    try:
        return json.dumps(json.loads(arguments))
    except (ValueError, RecursionError):  # arguments that are not JSON stay as the model wrote them
        return encode_basestring_ascii(arguments)

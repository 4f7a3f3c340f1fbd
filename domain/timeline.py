"""Blocks as entries of kdcube's timeline: their types, authors, paths and texts."""

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

from .blocks import PROMPTS, AnyBlock, Block, Kind, ToolCall
from .item import Item
from .window import Window

FORMAT = "kdcube"
"""Of blocks whose origin keeps their entry of the timeline, beside what the block itself says."""

SUMMARY, HEADER, PROMPT = "conv.range.summary", "turn.header", "user.prompt"
CALL, RESULT, COMPLETION = "react.tool.call", "react.tool.result", "assistant.completion"

TYPES = {
    Kind.USER: PROMPT,
    Kind.IMAGE: "user.attachment",
    Kind.DOCUMENT: "user.attachment",
    Kind.ASSISTANT: COMPLETION,
    Kind.THINKING: "react.thinking",
    Kind.TOOL_CALL: CALL,
    Kind.TOOL_RESULT: RESULT,
    Kind.ARTIFACT: "react.artifact",
    Kind.NOTE: "react.note",
    Kind.DEVELOPER: "system.message",
}
AUTHORS = {Kind.ASSISTANT: "assistant", Kind.DEVELOPER: "system"} | dict.fromkeys(PROMPTS, "user")


def attributes(block: AnyBlock) -> dict[str, Any]:
    """The entry that a block was imported from; nothing where it was not."""
    origin = block.origin
    if origin is None or origin.format != FORMAT or origin.entry is None:
        return {}
    return _read(origin.entry)


def type_of(block: AnyBlock) -> str:
    return str(attributes(block).get("type") or TYPES[block.kind])


def author_of(block: AnyBlock) -> str:
    """Who wrote it, in small letters; empty where nobody is said to have."""
    known = attributes(block)
    author = known.get("author") or known.get("role") if known else AUTHORS.get(block.kind)
    return str(author or "").strip().lower()


def turn_of(item: Item) -> str:
    return str(attributes(item.block).get("turn_id") or (f"turn_{item.turn}" if item.turn else ""))


def time_of(block: AnyBlock) -> str:
    return str(attributes(block).get("ts") or (block.origin.time if block.origin else None) or "")


def path_of(block: AnyBlock) -> str:
    return str(attributes(block).get("path") or "")


def mime_of(block: AnyBlock) -> str:
    return str(attributes(block).get("mime") or "")


def call_of(block: AnyBlock) -> str:
    """The call that a block is about."""
    if isinstance(block, Block):
        return str(attributes(block).get("call_id") or "")
    return block.tool_call_id


def is_hidden(block: AnyBlock) -> bool:
    known = attributes(block)
    return bool(known.get("hidden") or _meta(known).get("hidden"))


def replacement_of(block: AnyBlock) -> str:
    """What a hidden block shows in its place; empty where it shows nothing."""
    known = attributes(block)
    return str(known.get("replacement_text") or _meta(known).get("replacement_text") or "")


def text_of(block: AnyBlock) -> str:
    """Its text; of a tool call the whole request, in the JSON that the timeline holds."""
    if not isinstance(block, ToolCall):
        return block.text
    name, call = encode_basestring_ascii(block.name), encode_basestring_ascii(block.tool_call_id)
    return f'{{"tool_id": {name}, "tool_call_id": {call}, "params": {_ascii(block.arguments)}}}'


def shown(block: AnyBlock) -> str:
    """What a reader sees of it: where it is hidden behind a text, that text."""
    if block.origin is None:
        return block.text if isinstance(block, Block) else text_of(block)
    if not is_hidden(block):
        return text_of(block)
    replacement = replacement_of(block)
    return replacement if replacement.strip() else text_of(block)


def replaced(window: Window) -> dict[int, str]:
    """Texts by position that stand, now or from the next boundary on, where blocks were."""
    earlier = window.boundary.replacements if window.boundary else ()
    texts = {replacement.position: replacement.text for replacement in earlier}
    texts |= {at: text for at, text in window.hides.items() if text and not text.isspace()}
    trims = window.boundary.trims if window.boundary else ()
    cut = {trim.position: trim for trim in trims}
    for item in window.items if cut else ():
        if (trim := cut.get(item.position)) and trim.head + trim.tail < len(item.block.text):
            text = item.block.text
            texts[item.position] = text[: trim.head] + (text[-trim.tail :] if trim.tail else "")
    return texts


def is_summary(block: AnyBlock) -> bool:
    return block.origin is not None and type_of(block) == SUMMARY


def opens_turn(block: AnyBlock) -> bool:
    """A turn's header, or what a person said."""
    if block.origin is None:
        return block.kind in PROMPTS
    return type_of(block) in {HEADER, PROMPT} or author_of(block) == "user"


def _meta(known: dict[str, Any]) -> dict[str, Any]:
    meta = known.get("meta")
    return meta if isinstance(meta, dict) else {}


@lru_cache(maxsize=4096)
def _read(entry: str) -> dict[str, Any]:
    try:
        known = json.loads(entry)
    except (ValueError, RecursionError):  # whatever an import kept: then the block speaks alone
        return {}
    return known if isinstance(known, dict) else {}


def _ascii(arguments: str) -> str:
    """Arguments as they stand in an entry, where no letter is outside of ASCII."""
    if arguments.isascii():
        return arguments
    try:
        return json.dumps(json.loads(arguments))
    except (ValueError, RecursionError):  # as a model wrote them
        return encode_basestring_ascii(arguments)

"""How a tool call and its answer are spelled, so that every provider takes them."""

import json
import re
from collections.abc import Collection

from ...domain.blocks import Media, NativePart, Part, ToolResult
from ..history_view import Entry
from . import sendable
from .sendable import JsonObject

NO_RESULT = "[no result yet]"
"""Stands where the result of an open call will be: no provider takes a call without one."""
NO_OUTPUT = "[no output]"
"""Stands for a result that says nothing: some providers refuse an empty one."""

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def distinct_id(call_id: str, position: int, taken: Collection[str], longest: int) -> str:
    """The call's own id where it will do; else one made of it and the call's position.

    It depends on what precedes the call alone, so that a growing view never renames one.
    """
    if len(call_id) <= longest and _ID.fullmatch(call_id) and call_id not in taken:
        return call_id
    mark = f"_{position}"
    while True:
        made = _NOT_IN_NAMES.sub("_", call_id)[: longest - len(mark)] + mark
        if made not in taken:
            return made
        mark += "_"


def tool_name(name: str, longest: int) -> str:
    """A tool's name in the letters that providers accept."""
    return _NOT_IN_NAMES.sub("_", name)[:longest] or "unnamed"


def arguments(entry: Entry) -> JsonObject:
    """What the model asked for; a hidden call says what is shown in its place."""
    if entry.shown is not None:
        return {"hidden": sendable.text(entry.shown)}
    asked = _object(entry.block.text)
    return {"_raw": sendable.text(entry.block.text)} if asked is None else asked


def arguments_text(entry: Entry) -> str:
    """The arguments as JSON text: the model's own, byte for byte, where they are an object."""
    if entry.shown is None and _object(entry.block.text) is not None:
        return sendable.text(entry.block.text)
    return json.dumps(arguments(entry), ensure_ascii=False)


def _object(words: str) -> JsonObject | None:
    try:
        value = sendable.tree(words)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def answer(result: Entry | None, provider: str) -> list[str | Media | JsonObject]:
    """What answers a call, in order: texts, media and the provider's own parts; never nothing.

    A trimmed or hidden result is its text alone.
    """
    if result is None:
        return [NO_RESULT]
    said = [_sent(part, provider) for part in _parts(result)]
    return [part for part in said if part is not None] or [NO_OUTPUT]


def _parts(result: Entry) -> tuple[Part | str, ...]:
    content = result.block.content if isinstance(result.block, ToolResult) else ""
    return (result.text,) if result.shown is not None or isinstance(content, str) else content


def _sent(part: Part | str, provider: str) -> str | Media | JsonObject | None:
    if isinstance(part, Media):
        return part
    if isinstance(part, NativePart):
        return sendable.item(part.native, provider)
    words = part if isinstance(part, str) else part.text
    return sendable.text(words) if words.strip() else None

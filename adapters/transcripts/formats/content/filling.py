"""Puts back into the rest of an entry what its blocks hold: the entry is as it came."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, NativePart, Text, ToolResult
from . import media_text
from .holes import Form

_NONE: Mapping[int, Any] = MappingProxyType({})


def filled(
    rest: dict[str, Any], blocks: Sequence[AnyBlock], earlier: Mapping[int, Any] = _NONE
) -> Any:
    """The entry as it was; `earlier` are those before it, by their number."""
    entry = rest["entry"]
    for hole in rest["holes"]:
        if "line" in hole:
            value = value_at(earlier[hole["line"]], hole["there"])
        else:
            value = _held(blocks[hole["block"]], hole.get("form", "text"), hole.get("part"))
        if span := hole.get("span"):
            value = value[span[0] : span[1]]
        if not hole["at"]:
            return value
        *way, last = hole["at"]
        value_at(entry, way)[last] = value
    return entry


def value_at(entry: Any, at: Sequence[str | int]) -> Any:
    """The value that stands there. Raises LookupError or TypeError where there is none."""
    for step in at:
        entry = entry[step]
    return entry


def _held(block: AnyBlock, form: Form, part: str | int | None) -> Any:
    of: AnyBlock | Text | Media | NativePart = block
    if isinstance(block, ToolResult) and not isinstance(block.content, str) and part is not None:
        assert isinstance(part, int), "a part of a result has a number"
        of = block.content[part]
    match form:
        case "text":
            return _text(of)
        case "json":
            return json.loads(_text(of))
        case "argument":
            return json.loads(_text(of))[part]
        case "native":
            return _native(of, part if isinstance(part, str) else None)
    media = of.media if isinstance(of, Block) else of
    assert isinstance(media, Media), "what a hole was made for is there to fill it"
    match form:
        case "base64":
            return media_text.base64_of(media.data)
        case "address":
            return media_text.address_of(media)
        case "words":
            return media.data.decode()


def _text(of: AnyBlock | Text | Media | NativePart) -> str:
    assert not isinstance(of, Media | NativePart), "a text is held by what has one"
    return of.text


def _native(of: AnyBlock | Text | Media | NativePart, field: str | None) -> Any:
    assert not isinstance(of, Text | Media), "neither has an item"
    assert of.native, "what a hole was made for is there to fill it"
    item = json.loads(of.native.item)
    return item if field is None else item[field]

"""Restores an entry by filling its placeholders from its blocks."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .....domain.blocks import AnyBlock, Block, Media, NativePart, Text, ToolResult
from . import media_text
from .placeholders import PlaceholderForm

_NONE: Mapping[int, Any] = MappingProxyType({})


def fill_entry(
    rest: dict[str, Any], blocks: Sequence[AnyBlock], earlier: Mapping[int, Any] = _NONE
) -> Any:
    """Return the original entry; `earlier` are the entries before it, by number."""
    entry = rest["entry"]
    for hole in rest["holes"]:
        if "line" in hole:
            value = get_at_path(earlier[hole["line"]], hole["there"])
        else:
            value = _block_value(blocks[hole["block"]], hole.get("form", "text"), hole.get("part"))
        if span := hole.get("span"):
            value = value[span[0] : span[1]]
        if not hole["at"]:
            return value
        *way, last = hole["at"]
        get_at_path(entry, way)[last] = value
    return entry


def get_at_path(entry: Any, at: Sequence[str | int]) -> Any:
    """Return the value at that path. Raises LookupError or TypeError if there is none."""
    for step in at:
        entry = entry[step]
    return entry


def _block_value(block: AnyBlock, form: PlaceholderForm, part: str | int | None) -> Any:
    of: AnyBlock | Text | Media | NativePart = block
    if isinstance(block, ToolResult) and not isinstance(block.content, str) and part is not None:
        assert isinstance(part, int), "a part of a result has a number"
        of = block.content[part]
    match form:
        case "text":
            return _require_text(of)
        case "json":
            return json.loads(_require_text(of))
        case "argument":
            return json.loads(_require_text(of))[part]
        case "native":
            return _native_value(of, part if isinstance(part, str) else None)
    media = of.media if isinstance(of, Block) else of
    assert isinstance(media, Media), "what a hole was made for is there to fill it"
    match form:
        case "base64":
            return media_text.bytes_to_base64(media.data)
        case "address":
            return media_text.make_media_address(media)
        case "words":
            return media.data.decode()


def _require_text(of: AnyBlock | Text | Media | NativePart) -> str:
    assert not isinstance(of, Media | NativePart), "a text is held by what has one"
    return of.text


def _native_value(of: AnyBlock | Text | Media | NativePart, field: str | None) -> Any:
    assert not isinstance(of, Text | Media), "neither has an item"
    assert of.native, "what a hole was made for is there to fill it"
    item = json.loads(of.native.item)
    return item if field is None else item[field]

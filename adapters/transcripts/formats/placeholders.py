"""Replaces what blocks hold of a source entry by placeholders, and fills them again.

The remainder of an entry is stored with its first block, and export fills the placeholders.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

from ....domain.blocks import AnyBlock, Block, Media, Text, ToolCall, ToolResult
from . import media_text

JsonPath = tuple[str | int, ...]
"""The fields and indexes that lead from the entry to a value."""

PlaceholderForm = Literal["text", "json", "argument", "native", "base64", "address", "words"]
"""The encoding of the block's content in the entry: its text, the JSON value of its text, one of a
call's arguments, the provider's own item or a field of it, or its bytes as base64, URL or words.
"""

MIN_COPY_CHARACTERS = 32
"""The minimum length in characters of a copy that is replaced."""
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A path in an entry, and the block that holds its value."""

    path: JsonPath
    form: PlaceholderForm = "text"
    part: str | int | None = None
    """The part of a result, argument of a call, or field of a native item; None for all."""
    block_index: int = 0
    span: tuple[int, int] | None = None
    """The range of characters of the text; None for all of it."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, without default values."""
        told: dict[str, Any] = {"at": self.path, "block": self.block_index}
        if self.form != "text":
            told["form"] = self.form
        if self.part is not None:
            told["part"] = self.part
        return told if self.span is None else told | {"span": self.span}


@dataclass(frozen=True, slots=True)
class EarlierValue:
    """A value, or a range of a text, that an earlier entry also has."""

    path: JsonPath
    line: int
    earlier_path: JsonPath
    span: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, without default values."""
        told: dict[str, Any] = {"at": self.path, "line": self.line, "there": self.earlier_path}
        return told if self.span is None else told | {"span": self.span}


def make_remainder(entry: Any, holes: Sequence[Placeholder | EarlierValue]) -> dict[str, Any]:
    """Return the entry without what blocks or earlier entries hold, and its placeholders."""
    left = _blank_paths(entry, [hole.path for hole in holes])
    return {"entry": left, "holes": [hole.to_json() for hole in holes]}


def find_copies(
    entry: Any, blocks: Sequence[AnyBlock], holes: Sequence[Placeholder | EarlierValue]
) -> Iterator[Placeholder]:
    """Find other places in the entry with exactly the texts of its blocks."""
    taken = {hole.path for hole in holes}
    known: dict[str, tuple[int, PlaceholderForm, str | int | None]] = {}
    for number, block in enumerate(blocks):
        for text, form, part in _block_texts(block):
            if len(text) >= MIN_COPY_CHARACTERS:
                known.setdefault(text, (number, form, part))
    waiting: list[tuple[JsonPath, Any]] = [((), entry)] if known else []
    while waiting:
        at, value = waiting.pop()
        if at in taken:
            continue
        if isinstance(value, str) and value in known:
            number, form, part = known[value]
            yield Placeholder(at, form, part, number)
        elif isinstance(value, dict) and len(at) < _MAX_DEPTH:
            waiting += [((*at, field), inner) for field, inner in value.items()]
        elif isinstance(value, list) and len(at) < _MAX_DEPTH:
            waiting += [((*at, index), inner) for index, inner in enumerate(value)]


def _blank_paths(entry: Any, ats: Sequence[JsonPath]) -> Any:
    """Return a copy with null at these paths; everything else is shared."""
    if () in ats:
        return None
    copied: dict[JsonPath, Any] = {(): copy(entry)}
    for at in ats:
        for depth in range(1, len(at)):
            way = at[:depth]
            if way not in copied:
                above = copied[way[:-1]]
                above[way[-1]] = copied[way] = copy(above[way[-1]])
        copied[at[:-1]][at[-1]] = None
    return copied[()]


def _block_texts(block: AnyBlock) -> Iterator[tuple[str, PlaceholderForm, str | int | None]]:
    match block:
        case ToolCall():
            yield block.arguments, "text", None
            for name, value in block.parse_arguments().items():
                if isinstance(value, str):
                    yield value, "argument", name
        case ToolResult(content=str(text)):
            yield text, "text", None
        case ToolResult():
            for index, part in enumerate(block.content):
                if isinstance(part, Text):
                    yield part.text, "text", index
        case Block():
            yield block.text, "text", None


def fill_entry(
    rest: dict[str, Any], blocks: Sequence[AnyBlock], earlier: Mapping[int, Any] | None = None
) -> Any:
    """Return the original entry; `earlier` are the entries before it, by number."""
    entry = rest["entry"]
    for hole in rest["holes"]:
        if "line" in hole:
            value = get_at_path((earlier or {})[hole["line"]], hole["there"])
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
    of: Any = block
    if isinstance(block, ToolResult) and not isinstance(block.content, str) and part is not None:
        assert isinstance(part, int), "a part of a result has a number"
        of = block.content[part]
    match form:
        case "text":
            return of.text
        case "json":
            return json.loads(of.text)
        case "argument":
            return json.loads(of.text)[part]
        case "native":
            item = json.loads(of.native.item)
            return item[part] if isinstance(part, str) else item
    media = of.media if isinstance(of, Block) else of
    assert isinstance(media, Media), "what a hole was made for is there to fill it"
    return media.data.decode() if form == "words" else media_text.encode_media(media, form)

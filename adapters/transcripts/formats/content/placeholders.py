"""Takes out of a source's entry what its blocks hold: each place becomes a hole that says what.

What is left is stored with the first block as the rest of the entry, and export fills the holes.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

from .....domain.blocks import AnyBlock, Block, Text, ToolCall, ToolResult

JsonPath = tuple[str | int, ...]
"""The way to a value: the fields and indexes that lead to it, from the entry down."""

PlaceholderForm = Literal["text", "json", "argument", "native", "base64", "address", "words"]
"""How what a block holds is written where it stood: as its text, as what this text says as JSON,
as one of a call's arguments, as the provider's own item or a field of it, as the base64 or the
address of its bytes, or as the words that these bytes are."""

MIN_COPY_CHARACTERS = 32
"""Characters from which on a copy of what a block holds is left out."""
_MAX_DEPTH = 16
"""Levels that are searched for such copies."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place of an entry, and the block that holds what stood there."""

    path: JsonPath
    form: PlaceholderForm = "text"
    part: str | int | None = None
    """Which part of a result, argument of a call, or field of a native item; None for all."""
    block_index: int = 0
    """Which block of the entry."""
    span: tuple[int, int] | None = None
    """From which character of the text to which, where not all of it stood there."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what goes without saying."""
        told: dict[str, Any] = {"at": self.path, "block": self.block_index}
        if self.form != "text":
            told["form"] = self.form
        if self.part is not None:
            told["part"] = self.part
        return told if self.span is None else told | {"span": self.span}


@dataclass(frozen=True, slots=True)
class EarlierValue:
    """A value that stands in an earlier entry as well: all of it, or of a text a stretch."""

    path: JsonPath
    line: int
    """The number of that entry."""
    earlier_path: JsonPath
    span: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what goes without saying."""
        told: dict[str, Any] = {"at": self.path, "line": self.line, "there": self.earlier_path}
        return told if self.span is None else told | {"span": self.span}


def make_remainder(entry: Any, holes: Sequence[Placeholder | EarlierValue]) -> dict[str, Any]:
    """The entry without what blocks or earlier entries hold, and what goes where."""
    left = _blank_paths(entry, [hole.path for hole in holes])
    return {"entry": left, "holes": [hole.to_json() for hole in holes]}


def find_copies(
    entry: Any, blocks: Sequence[AnyBlock], holes: Sequence[Placeholder | EarlierValue]
) -> Iterator[Placeholder]:
    """Where else in the entry the very texts stand that its blocks hold."""
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
    """A copy with null at these places; what lies beside the way to them is shared."""
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

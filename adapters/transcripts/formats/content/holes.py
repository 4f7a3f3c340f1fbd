"""Takes out of a source's entry what its blocks hold: each place becomes a hole that says what.

What is left is stored with the first block as the rest of the entry, and export fills the holes.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

from .....domain.blocks import AnyBlock, Block, Text, ToolCall, ToolResult

At = tuple[str | int, ...]
"""The way to a value: the fields and indexes that lead to it, from the entry down."""

Form = Literal["text", "json", "argument", "native", "base64", "address", "words"]
"""How what a block holds is written where it stood: as its text, as what this text says as JSON,
as one of a call's arguments, as the provider's own item or a field of it, as the base64 or the
address of its bytes, or as the words that these bytes are."""

WORTH_IT = 32
"""Characters from which on a copy of what a block holds is left out."""
_DEEPEST = 16
"""Levels that are searched for such copies."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A place of an entry, and the block that holds what stood there."""

    at: At
    form: Form = "text"
    part: str | int | None = None
    """Which part of a result, argument of a call, or field of a native item; None for all."""
    block: int = 0
    """Which block of the entry."""
    span: tuple[int, int] | None = None
    """From which character of the text to which, where not all of it stood there."""

    def stored(self) -> dict[str, Any]:
        """As plain JSON, without what goes without saying."""
        told: dict[str, Any] = {"at": self.at, "block": self.block}
        if self.form != "text":
            told["form"] = self.form
        if self.part is not None:
            told["part"] = self.part
        return told if self.span is None else told | {"span": self.span}


@dataclass(frozen=True, slots=True)
class Same:
    """A value that stands in an earlier entry as well: all of it, or of a text a stretch."""

    at: At
    line: int
    """The number of that entry."""
    there: At
    span: tuple[int, int] | None = None

    def stored(self) -> dict[str, Any]:
        """As plain JSON, without what goes without saying."""
        told: dict[str, Any] = {"at": self.at, "line": self.line, "there": self.there}
        return told if self.span is None else told | {"span": self.span}


def rest_of(entry: Any, holes: Sequence[Hole | Same]) -> dict[str, Any]:
    """The entry without what blocks or earlier entries hold, and what goes where."""
    left = _emptied(entry, [hole.at for hole in holes])
    return {"entry": left, "holes": [hole.stored() for hole in holes]}


def copies(entry: Any, blocks: Sequence[AnyBlock], holes: Sequence[Hole | Same]) -> Iterator[Hole]:
    """Where else in the entry the very texts stand that its blocks hold."""
    taken = {hole.at for hole in holes}
    known: dict[str, tuple[int, Form, str | int | None]] = {}
    for number, block in enumerate(blocks):
        for text, form, part in _texts(block):
            if len(text) >= WORTH_IT:
                known.setdefault(text, (number, form, part))
    waiting: list[tuple[At, Any]] = [((), entry)] if known else []
    while waiting:
        at, value = waiting.pop()
        if at in taken:
            continue
        if isinstance(value, str) and value in known:
            number, form, part = known[value]
            yield Hole(at, form, part, number)
        elif isinstance(value, dict) and len(at) < _DEEPEST:
            waiting += [((*at, field), inner) for field, inner in value.items()]
        elif isinstance(value, list) and len(at) < _DEEPEST:
            waiting += [((*at, index), inner) for index, inner in enumerate(value)]


def _emptied(entry: Any, ats: Sequence[At]) -> Any:
    """A copy with null at these places; what lies beside the way to them is shared."""
    if () in ats:
        return None
    copied: dict[At, Any] = {(): copy(entry)}
    for at in ats:
        for depth in range(1, len(at)):
            way = at[:depth]
            if way not in copied:
                above = copied[way[:-1]]
                above[way[-1]] = copied[way] = copy(above[way[-1]])
        copied[at[:-1]][at[-1]] = None
    return copied[()]


def _texts(block: AnyBlock) -> Iterator[tuple[str, Form, str | int | None]]:
    match block:
        case ToolCall():
            yield block.arguments, "text", None
            for name, value in block.parsed().items():
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

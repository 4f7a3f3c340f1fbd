"""An item that was read: the blocks that it becomes, and the rest that they do not hold."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .....domain.blocks import PROMPTS, Kind, Native
from ..json_lines import Line
from ..reading.fields import Item
from .context import OTHER, PROMPT, TOLD
from .entries import PASSTHROUGH, PROVIDER

Piece = partial[Any]
"""A block, all but its origin."""


@dataclass(slots=True)
class Read:
    """The blocks of an item, without their origin, and what they do not hold of it."""

    rest: Item
    pieces: list[Piece] = field(default_factory=list)
    by_model: bool = False
    served: bool = False
    """A call that the provider answered itself."""
    call: str | None = None
    """The id of the call that it makes or answers."""


def kind_of(read: Read) -> bytes:
    """What the item is for those that go back."""
    kinds = {piece.keywords.get("kind") for piece in read.pieces}
    if kinds & PROMPTS:
        return PROMPT
    return TOLD if kinds == {Kind.DEVELOPER} else OTHER


def native(
    item: Item,
    line: Line,
    piece: Piece,
    *,
    by_model: bool = False,
    served: bool = False,
    call: str | None = None,
) -> Read:
    """An item that goes back to its provider as it came."""
    native = Native(provider=PROVIDER, item=line.json(without(item, PASSTHROUGH)))
    rest = {PASSTHROUGH: item[PASSTHROUGH]} if PASSTHROUGH in item else {}
    return Read(rest, [partial(piece, native=native)], by_model, served, call)


def without(item: Item, *fields: str) -> Item:
    return {name: value for name, value in item.items() if name not in fields}

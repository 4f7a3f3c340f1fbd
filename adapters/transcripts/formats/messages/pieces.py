"""What one message of an array is made of, and where in the message each piece stood."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import AnyBlock
from ..content.holes import At, Hole
from ..reading.fields import Item, MalformedError, json_name, take


@dataclass(frozen=True, slots=True)
class Made:
    """A block, and the places in the message that it fills again."""

    block: AnyBlock
    holes: tuple[Hole, ...]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What the provider put in the place of all that precedes it."""

    summary: str | None
    partial: str | None = None


@dataclass(frozen=True, slots=True)
class Unheard:
    """A piece of a type that this reader does not know."""

    type: str
    item: Any


@dataclass(frozen=True, slots=True)
class Wrong:
    """A piece that cannot be read, and why."""

    reason: str
    item: Any


Piece = Made | Compaction | Unheard | Wrong


def texts(owner: Item, field: str) -> Iterator[tuple[At, Any]]:
    """The items of a content that is a text or a list, each with its place; none where it is null.

    A text is one item, of the type `text`; its place is that of the text itself.
    """
    content = owner.get(field)
    if content is None:
        return
    if isinstance(content, str):
        yield (field,), {"type": "text", "text": content}
        return
    for index, item in enumerate(take(owner, field, list)):
        yield (field, index), item


def type_of(item: Any) -> str:
    """The type of an item of a list."""
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return take(item, "type", str)


def at_text(at: At) -> At:
    """The place of the words of a text item."""
    return (*at, "text") if isinstance(at[-1], int) else at

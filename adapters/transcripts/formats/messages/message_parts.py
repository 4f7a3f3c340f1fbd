"""What one message of an array is made of, and where in the message each piece stood."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import AnyBlock
from ..content.placeholders import JsonPath, Placeholder
from ..reading.fields import JsonDict, MalformedError, json_name, require_field


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block, and the places in the message that it fills again."""

    block: AnyBlock
    placeholders: tuple[Placeholder, ...]


@dataclass(frozen=True, slots=True)
class ProviderCompaction:
    """What the provider put in the place of all that precedes it."""

    summary: str | None
    partial_reason: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A piece of a type that this reader does not know."""

    type: str
    item: Any


@dataclass(frozen=True, slots=True)
class MalformedPart:
    """A piece that cannot be read, and why."""

    reason: str
    item: Any


MessagePart = ReadBlock | ProviderCompaction | UnknownPart | MalformedPart


def read_texts(owner: JsonDict, field: str) -> Iterator[tuple[JsonPath, Any]]:
    """The items of a content that is a text or a list, each with its place; none where it is null.

    A text is one item, of the type `text`; its place is that of the text itself.
    """
    content = owner.get(field)
    if content is None:
        return
    if isinstance(content, str):
        yield (field,), {"type": "text", "text": content}
        return
    for index, item in enumerate(require_field(owner, field, list)):
        yield (field, index), item


def read_item_type(item: Any) -> str:
    """The type of an item of a list."""
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return require_field(item, "type", str)


def text_path(at: JsonPath) -> JsonPath:
    """The place of the words of a text item."""
    return (*at, "text") if isinstance(at[-1], int) else at

"""Defines the pieces of a message, and their places in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .....domain.blocks import AnyBlock
from ..content.placeholders import JsonPath, Placeholder
from ..reading.fields import JsonDict, MalformedError, json_name, require_field


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """A block, and its placeholders in the message."""

    block: AnyBlock
    placeholders: tuple[Placeholder, ...]


@dataclass(frozen=True, slots=True)
class ProviderCompaction:
    """A provider's replacement for everything before it."""

    summary: str | None
    partial_reason: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownPart:
    type: str
    item: Any


@dataclass(frozen=True, slots=True)
class MalformedPart:
    """A piece that cannot be read, and the reason."""

    reason: str
    item: Any


MessagePart = ReadBlock | ProviderCompaction | UnknownPart | MalformedPart


def read_texts(owner: JsonDict, field: str) -> Iterator[tuple[JsonPath, Any]]:
    """Yield the items of a content that is a text or a list, each with its path; none for null.

    A text is one item of type `text`; its path is that of the text itself.
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
    """Return the type of a list's item."""
    if not isinstance(item, dict):
        raise MalformedError(f"expected an object, got {json_name(item)}")
    return require_field(item, "type", str)


def text_path(at: JsonPath) -> JsonPath:
    return (*at, "text") if isinstance(at[-1], int) else at

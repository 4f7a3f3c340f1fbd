"""Defines an item after reading: its blocks, and the remainder that they do not hold."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .....domain.blocks import PROMPT_KINDS, Kind, Native
from ..json_lines import SourceLine
from ..reading.fields import JsonDict
from .context import INPUT_KIND, OTHER_KIND, PROMPT_KIND
from .entries import CODEX_PROVIDER, PASSTHROUGH_FIELD

BlockFactory = partial[Any]
"""A block without its origin."""


@dataclass(slots=True)
class ItemContent:
    """The blocks of an item, without their origins, and the remainder."""

    rest: JsonDict
    factories: list[BlockFactory] = field(default_factory=list)
    is_by_model: bool = False
    is_server_tool: bool = False
    call_id: str | None = None
    """The id of the call that it makes or answers."""


def rollback_kind(read: ItemContent) -> bytes:
    """Return the item's role in a rollback."""
    kinds = {piece.keywords.get("kind") for piece in read.factories}
    if kinds & PROMPT_KINDS:
        return PROMPT_KIND
    return INPUT_KIND if kinds == {Kind.DEVELOPER} else OTHER_KIND


def make_native_content(
    item: JsonDict,
    line: SourceLine,
    piece: BlockFactory,
    *,
    by_model: bool = False,
    served: bool = False,
    call: str | None = None,
) -> ItemContent:
    """Return the content of an item that goes back to its provider unchanged."""
    native = Native(
        provider=CODEX_PROVIDER, item=line.to_json(drop_item_fields(item, PASSTHROUGH_FIELD))
    )
    rest = {PASSTHROUGH_FIELD: item[PASSTHROUGH_FIELD]} if PASSTHROUGH_FIELD in item else {}
    return ItemContent(rest, [partial(piece, native=native)], by_model, served, call)


def drop_item_fields(item: JsonDict, *fields: str) -> JsonDict:
    return {name: value for name, value in item.items() if name not in fields}

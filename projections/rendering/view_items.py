"""Lists a view as the items that a framework gave, for a renderer of its own."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ...domain.blocks import AnyBlock
from ...domain.item import MessageRuns
from ...domain.native_item import fill_item
from ..view_content import ViewContent, ViewEntry
from .neutral import MESSAGE_ROLES
from .summary_message import render_summary


@dataclass(frozen=True, slots=True)
class ViewItem:
    """What a view sends as one item: the summary, an item as it was given, or one block."""

    role: str
    """`user`, `assistant`, `tool` or `developer`, by its last block."""
    text: str
    """The text of its last block as the view shows it; the whole marked text of a summary."""
    json: JsonValue = None
    """The item as it was given; the shortened text stands in the place of a longer one. None for
    the summary, for a block that was given without an item, and where the text that replaces a
    block cannot stand in its item."""
    entries: tuple[ViewEntry, ...] = ()
    """Its blocks; none for the summary."""

    @property
    def block(self) -> AnyBlock | None:
        """Its first block; None for the summary."""
        return self.entries[0].block if self.entries else None

    @property
    def is_shortened(self) -> bool:
        """Whether the view shows less of a block than was appended, or another text."""
        return any(entry.shown is not None for entry in self.entries)


def list_items(view: ViewContent, provider: str = "") -> list[ViewItem]:
    """Return what the view sends as the items of `provider`, in order, the summary first.

    A late tool result comes directly after the message of its call.
    """
    items = [ViewItem("user", render_summary(view))] if view.summary else []
    entries = _order_entries(view.entries)
    by_position = {entry.position: entry for entry in entries}
    whole = {
        entry.position: item
        for entry in entries
        if entry.item and entry.item.provider == provider
        if (item := _make_item(entry, by_position))
    }
    pieces = {piece.position for item in whole.values() for piece in item.entries}
    for entry in entries:
        if entry.position in whole:
            items.append(whole[entry.position])
        elif entry.position not in pieces:
            items.append(_make_view_item(entry))
    return items


def _order_entries(entries: Sequence[ViewEntry]) -> list[ViewEntry]:
    runs = MessageRuns()
    run_of = {one.position: runs.add(one.position, one.block, one.call) for one in entries}
    return sorted(entries, key=lambda entry: run_of[entry.position])


def _make_item(last: ViewEntry, by_position: Mapping[int, ViewEntry]) -> ViewItem | None:
    """Return the item that ends with this block; None if not all of it can be shown there."""
    item = last.item
    if item is None or not all(piece in by_position for piece in item.pieces):
        return None
    entries = (*(by_position[piece] for piece in item.pieces), last)
    shown = {at: one.shown for at, one in enumerate(entries) if one.shown is not None}
    text = fill_item(item, [entry.block for entry in entries], shown)
    return None if text is None else _make_view_item(last, json.loads(text), entries)


def _make_view_item(
    entry: ViewEntry, item: JsonValue = None, entries: tuple[ViewEntry, ...] = ()
) -> ViewItem:
    role = MESSAGE_ROLES.get(entry.block.kind, "user")
    return ViewItem(role, entry.text, item, entries or (entry,))

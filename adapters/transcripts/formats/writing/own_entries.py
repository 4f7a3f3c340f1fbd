"""Groups a session to export into its format's own entries and new messages."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind
from .....domain.compaction import RECORDED_LINEAGE
from ..content.fill_entry import fill_entry
from ..json_lines import parse_line
from ..outgoing import (
    OutgoingCompaction,
    OutgoingEntry,
    OutgoingMessage,
    OutgoingPart,
    OutgoingSession,
    group_outgoing_entries,
    group_outgoing_messages,
)

REFUSED_ENTRY = "refused"
"""The name of notes that hold what a reader could not read."""


def group_own_entries(
    outgoing: OutgoingSession, own: str, *, with_refused: bool = False
) -> Iterator[OutgoingEntry | OutgoingMessage | OutgoingCompaction]:
    """Yield the source's own entries, and messages for everything else.

    Calls and compactions of the source are among its entries. Refused entries are included only
    `with_refused`: some agents cannot resume with entries that they cannot read. A view is all
    messages, since it may keep only a part of an entry.
    """
    if outgoing.is_view or outgoing.source != own:
        yield from group_outgoing_messages(outgoing.read_parts())
        return
    loose: list[OutgoingPart] = []
    for part in group_outgoing_entries(outgoing.read_parts(), own):
        if isinstance(part, OutgoingCompaction) and part.boundary.policy == RECORDED_LINEAGE:
            continue
        if not isinstance(part, OutgoingEntry):
            loose.append(part)
        elif part.remainder is None and part.outgoing_blocks[0].block.kind is not Kind.NOTE:
            loose += part.outgoing_blocks
        elif is_partial_note(part):
            pass  # the entry itself holds it
        elif read_entry_type(part) == REFUSED_ENTRY and not (
            with_refused and is_json(part.raw or "")
        ):
            outgoing.count_loss("entries that were refused")
        else:
            yield from group_outgoing_messages(iter(loose))
            loose.clear()
            yield part
    yield from group_outgoing_messages(iter(loose))


def is_partial_note(entry: OutgoingEntry) -> bool:
    """Return whether it is a note about an unreadable part of another entry."""
    origin = entry.outgoing_blocks[0].block.origin
    return read_entry_type(entry) == REFUSED_ENTRY and (origin is None or origin.line is None)


def is_json(text: str) -> bool:
    """Return whether a raw text is JSON: an unreadable line may be anything."""
    return parse_line(text.encode()).problem is None


@dataclass(slots=True)
class EntryRestorer:
    """An object that restores entries in order, since later ones refer to earlier ones."""

    earlier: dict[int, Any] = field(default_factory=dict)

    def restore(self, entry: OutgoingEntry) -> Any:
        """Return the original entry, from its blocks and its remainder, or as it was kept; None if
        it was retracted since.
        """
        blocks: Sequence[AnyBlock] = [said.block for said in entry.outgoing_blocks]
        if entry.remainder is None:
            whole = json.loads(entry.raw or "null")
        else:
            whole = fill_entry(entry.remainder, blocks, self.earlier)
        origin = blocks[0].origin
        if origin and origin.line is not None:
            self.earlier[origin.line] = whole
        is_gone = entry.remainder is not None and all(
            said.is_retracted for said in entry.outgoing_blocks
        )
        return None if is_gone else whole


def read_entry_type(entry: OutgoingEntry) -> str:
    """Return the type of an entry that was kept raw; empty for an entry with blocks."""
    block = entry.outgoing_blocks[0].block
    return (block.name or "") if entry.raw is not None and isinstance(block, Block) else ""

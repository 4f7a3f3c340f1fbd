"""A session on its way out as its format's own entries, and what cutbank added as messages."""

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
"""The name of the notes that hold what a reader could not read."""


def group_own_entries(
    outgoing: OutgoingSession, own: str, *, with_refused: bool = False
) -> Iterator[OutgoingEntry | OutgoingMessage | OutgoingCompaction]:
    """The source's own entries to be put back together, and messages where there are none.

    Calls and compactions that the source recorded are among its entries. What was refused is among
    them only `with_refused`: some agents cannot go on with what they cannot read. A view is all
    messages: what it keeps of an entry need not be all of it.
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
    """Whether it is a note about a part of another entry, which could not be read."""
    origin = entry.outgoing_blocks[0].block.origin
    return read_entry_type(entry) == REFUSED_ENTRY and (origin is None or origin.line is None)


def is_json(text: str) -> bool:
    """Whether a text that was kept raw is JSON: a line that could not be read may be anything."""
    return parse_line(text.encode()).problem is None


@dataclass(slots=True)
class EntryRestorer:
    """Puts entries back together, one after the other: later ones refer to earlier ones."""

    earlier: dict[int, Any] = field(default_factory=dict)

    def restore(self, entry: OutgoingEntry) -> Any:
        """The entry as it came, from what its blocks hold and the rest of it, or as it was kept;
        None where it was taken back since."""
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
    """What kind of entry was kept raw; nothing where blocks were made of it."""
    block = entry.outgoing_blocks[0].block
    return (block.name or "") if entry.raw is not None and isinstance(block, Block) else ""

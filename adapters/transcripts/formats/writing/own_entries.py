"""A session on its way out as its format's own entries, and what cutbank added as messages."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .....domain.blocks import AnyBlock, Block, Kind
from .....domain.compaction import RECORDED
from ..content.filling import filled
from ..json_lines import parse
from ..outgoing import Compacted, Entry, Message, Outgoing, Part, entries, messages

REFUSED = "refused"
"""The name of the notes that hold what a reader could not read."""


def own_entries(
    outgoing: Outgoing, own: str, *, with_refused: bool = False
) -> Iterator[Entry | Message | Compacted]:
    """The source's own entries to be put back together, and messages where there are none.

    Calls and compactions that the source recorded are among its entries. What was refused is among
    them only `with_refused`: some agents cannot go on with what they cannot read. A view is all
    messages: what it keeps of an entry need not be all of it.
    """
    if outgoing.is_view or outgoing.source != own:
        yield from messages(outgoing.parts())
        return
    loose: list[Part] = []
    for part in entries(outgoing.parts(), own):
        if isinstance(part, Compacted) and part.boundary.policy == RECORDED:
            continue
        if not isinstance(part, Entry):
            loose.append(part)
        elif part.rest is None and part.said[0].block.kind is not Kind.NOTE:
            loose += part.said
        elif is_part(part):
            pass  # the entry itself holds it
        elif name_of(part) == REFUSED and not (with_refused and is_json(part.raw or "")):
            outgoing.lose("entries that were refused")
        else:
            yield from messages(iter(loose))
            loose.clear()
            yield part
    yield from messages(iter(loose))


def is_part(entry: Entry) -> bool:
    """Whether it is a note about a part of another entry, which could not be read."""
    origin = entry.said[0].block.origin
    return name_of(entry) == REFUSED and (origin is None or origin.line is None)


def is_json(text: str) -> bool:
    """Whether a text that was kept raw is JSON: a line that could not be read may be anything."""
    return parse(text.encode()).problem is None


@dataclass(slots=True)
class Restorer:
    """Puts entries back together, one after the other: later ones refer to earlier ones."""

    earlier: dict[int, Any] = field(default_factory=dict)

    def restore(self, entry: Entry) -> Any:
        """The entry as it came, from what its blocks hold and the rest of it, or as it was kept;
        None where it was taken back since."""
        blocks: Sequence[AnyBlock] = [said.block for said in entry.said]
        if entry.rest is None:
            whole = json.loads(entry.raw or "null")
        else:
            whole = filled(entry.rest, blocks, self.earlier)
        origin = blocks[0].origin
        if origin and origin.line is not None:
            self.earlier[origin.line] = whole
        is_gone = entry.rest is not None and all(said.retracted for said in entry.said)
        return None if is_gone else whole


def name_of(entry: Entry) -> str:
    """What kind of entry was kept raw; nothing where blocks were made of it."""
    block = entry.said[0].block
    return (block.name or "") if entry.raw is not None and isinstance(block, Block) else ""

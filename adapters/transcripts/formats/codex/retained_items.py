"""Finds the items that must be written again at a compaction."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .....domain.blocks import AnyBlock, Block, ToolCall, ToolResult
from .....domain.ranges import Ranges
from .....domain.trims import trim_text
from ..outgoing import OutgoingBlock, OutgoingCompaction
from ..reading.fields import JsonDict

_WrittenItems = tuple[list[JsonDict], Sequence[OutgoingBlock]]


class RetainedItems:
    """The items that a later compaction keeps."""

    def __init__(self, compactions: Iterable[OutgoingCompaction]) -> None:
        self._wanted: list[Ranges] = [Ranges()]
        for compacted in reversed([*compactions]):
            self._wanted.append(self._wanted[-1] | compacted.boundary.kept)
        self._held: dict[int, _WrittenItems] = {}

    def hold(self, items: list[JsonDict], said: Sequence[OutgoingBlock]) -> None:
        """Record written items with their blocks."""
        wanted = self._wanted[-1]
        for one in said:
            if wanted.runs and one.position in wanted:
                self._held[one.position] = items, said

    def find_kept(
        self, compacted: OutgoingCompaction
    ) -> list[tuple[list[JsonDict] | None, Sequence[OutgoingBlock]]]:
        """Return kept items in order; None for blocks that the compaction shows in another form."""
        boundary = compacted.boundary
        instead = {one.position: one.text for one in boundary.replacements}
        trims = {one.position: one for one in boundary.trims}
        found: list[tuple[list[JsonDict] | None, Sequence[OutgoingBlock]]] = []
        seen: set[int] = set()
        for position in sorted(self._held):
            if position not in boundary.kept or position in seen:
                continue
            items, said = self._held[position]
            seen.update(one.position for one in said)
            shown = {
                one.position: instead.get(one.position)
                or trim_text(one.block.text, trims[one.position])
                for one in said
                if one.position in instead or one.position in trims
            }
            if shown:
                said = [_show_replacement(one, shown.get(one.position)) for one in said]
            found.append((None if shown else items, said))
        self._wanted.pop()
        later = self._wanted[-1]
        self._held = {at: held for at, held in self._held.items() if at in later}
        return found


def _show_replacement(said: OutgoingBlock, text: str | None) -> OutgoingBlock:
    return said if text is None else replace(said, block=_replace_text(said.block, text))


def _replace_text(block: AnyBlock, text: str) -> AnyBlock:
    match block:
        case ToolCall():
            return block  # its answer names it, so it stays unchanged
        case ToolResult():
            return block.model_copy(update={"content": text, "native": None})
        case Block():
            return block.model_copy(update={"text": text, "media": None, "native": None})

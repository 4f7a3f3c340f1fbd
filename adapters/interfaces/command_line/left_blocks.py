"""Selects what a compaction removed: by kind, the largest, and what to recall first."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from ....domain.blocks import AnyBlock, Kind
from ....domain.ranges import Ranges
from ....domain.token_estimate import KindShare, compute_kind_shares
from ....projections.view_entry import ViewEntry
from ...runtime.sessions.recall import RecalledBlock
from ...runtime.sessions.stored_session import StoredSession


@dataclass(frozen=True, slots=True)
class RecallProof:
    """A recalled block, compared with the original."""

    recalled: RecalledBlock
    size: int
    """Bytes of its text."""
    sha256: str
    is_original: bool


class LeftBlocks:
    """The blocks that left, as the view held them before."""

    def __init__(self, before: Iterable[ViewEntry]) -> None:
        self.before = {entry.position: entry for entry in before}
        self.handles = Ranges.of(self.before)
        self._by_size = sorted(self.before.values(), key=lambda entry: -entry.tokens)

    def count_shares(self) -> tuple[KindShare, ...]:
        """Return shares by kind, the most tokens first."""
        return compute_kind_shares(
            (entry.block.kind, entry.tokens) for entry in self.before.values()
        )

    def find_largest(self, count: int) -> list[ViewEntry]:
        """Return the blocks with the most tokens."""
        return self._by_size[:count]

    def choose_recalls(self, cited: Ranges) -> list[ViewEntry]:
        """Return a tool's result that the summary names, if any, and the largest block."""
        named = [entry for entry in self._by_size if entry.position in cited]
        results = [entry for entry in named if entry.block.kind is Kind.TOOL_RESULT]
        chosen = [*(results or named)[:1], *self.find_largest(1)]
        return list({entry.position: entry for entry in chosen}.values())

    def prove_recall(self, session: StoredSession, position: int) -> RecallProof:
        """Recall a block, and compare it with the original."""
        (found,) = session.recall(position)
        content = _block_bytes(found.block)
        original = self.before[position].block
        return RecallProof(
            recalled=found,
            size=len(content),
            sha256=sha256(content).hexdigest(),
            is_original=found.block == original and content == _block_bytes(original),
        )


def _block_bytes(block: AnyBlock) -> bytes:
    return block.text.encode("utf-8", "surrogatepass")

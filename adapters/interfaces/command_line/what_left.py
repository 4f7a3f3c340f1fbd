"""What a compaction took out of a view: by kind, the largest, and which of it to recall first."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from ....domain.blocks import AnyBlock, Kind
from ....domain.ranges import Ranges
from ....domain.shares import Share, shares_of
from ....projections.history_view import Entry
from ...runtime.sessions.recall import Recalled
from ...runtime.sessions.stored_session import StoredSession


@dataclass(frozen=True, slots=True)
class Proof:
    """A block recalled after it left, beside what it was before."""

    recalled: Recalled
    size: int
    """Bytes of its text."""
    sha256: str
    is_original: bool


class WhatLeft:
    """The blocks that left, as the view held them before: originals to compare with."""

    def __init__(self, before: Iterable[Entry]) -> None:
        self.before = {entry.position: entry for entry in before}
        self.handles = Ranges.of(self.before)
        self._by_size = sorted(self.before.values(), key=lambda entry: -entry.tokens)

    def shares(self) -> tuple[Share, ...]:
        """By kind, the most tokens first."""
        return shares_of((entry.block.kind, entry.tokens) for entry in self.before.values())

    def largest(self, count: int) -> list[Entry]:
        """The blocks with the most tokens."""
        return self._by_size[:count]

    def worth_recalling(self, cited: Ranges) -> list[Entry]:
        """A tool's result that the summary names, if it names one, and the largest block."""
        named = [entry for entry in self._by_size if entry.position in cited]
        results = [entry for entry in named if entry.block.kind is Kind.TOOL_RESULT]
        chosen = [*(results or named)[:1], *self.largest(1)]
        return list({entry.position: entry for entry in chosen}.values())

    def proof(self, session: StoredSession, position: int) -> Proof:
        """Recall a block, and compare it with what it was before it left."""
        (found,) = session.recall(position)
        content = _bytes(found.block)
        original = self.before[position].block
        return Proof(
            recalled=found,
            size=len(content),
            sha256=sha256(content).hexdigest(),
            is_original=found.block == original and content == _bytes(original),
        )


def _bytes(block: AnyBlock) -> bytes:
    return block.text.encode("utf-8", "surrogatepass")

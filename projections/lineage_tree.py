"""Builds the tree of a lineage: its boundaries, their status, and what their summaries cover."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ..domain.cached_property import cached_property
from ..domain.compaction_events import (
    BoundaryActivated,
    CompactBoundary,
    CompactionFailed,
    CompactionOpened,
    CompactionRejected,
    CompactionReverted,
    PreparationDropped,
    Summary,
)
from ..domain.event import Event
from ..domain.ranges import Ranges
from ..domain.token_estimate import PromptSizeChange
from .block_statuses import collect_boundaries

FirstCallFinder = Callable[[BoundaryActivated], int | None]
"""Returns the number of the first call that was sent the activated view; None if there was none."""


class BoundaryStatus(StrEnum):
    SERVED = "served"
    """Views begin at it."""
    BUILT_UPON = "built upon"
    """Views began at it, and the served boundary builds upon it."""
    UNDONE = "undone"
    """A block that it removed was retracted, so views begin at an earlier boundary again."""
    REVERTED = "reverted"
    PREPARED = "prepared"
    """Recorded but not served yet."""
    DROPPED = "dropped"
    """Prepared and given up."""
    OVERTAKEN = "overtaken"
    """Prepared and replaced by another."""


@dataclass(frozen=True, slots=True)
class BoundaryNode:
    """One boundary, with what its summary covers."""

    boundary: CompactBoundary
    summary: Summary | None
    lineage: str
    """The lineage in which it was decided: this one, or the one that it continues."""
    status: BoundaryStatus
    new_blocks: Ranges
    inherited_blocks: Ranges
    """The blocks that had left earlier and that this summary covers too."""
    served_from: int | None
    """The position from which views begin at it; None if it was never served."""
    first_call: int | None
    """The number of the first call that was sent a view that begins at it."""
    sizes: PromptSizeChange
    """The sizes of prompts before and after it."""
    ended_by: CompactionReverted | PreparationDropped | None = None

    @property
    def number(self) -> int:
        return self.boundary.originator_version

    @property
    def previous(self) -> int | None:
        return self.boundary.previous

    @property
    def drawn_at(self) -> datetime:
        return self.boundary.timestamp

    @property
    def covers(self) -> Ranges:
        return self.summary.covers if self.summary else Ranges()


@dataclass(frozen=True, slots=True)
class FailedCompaction:
    """A rejected draft, or a compaction that failed or did less than requested."""

    event: CompactionRejected | CompactionFailed
    based_on: int
    """The boundary that was served then; 0 for none."""


@dataclass(frozen=True, slots=True)
class SummarizedBlocks:
    """Blocks that left together, and the summary that covers them now."""

    blocks: Ranges
    removed_by: int
    summary: int
    """The boundary whose summary covers them."""


@dataclass(frozen=True)
class LineageTree:
    """All boundaries of one lineage, including inherited ones."""

    session: str
    namespace: str
    lineage: str
    nodes: tuple[BoundaryNode, ...]
    """In the order of recording."""
    attempts: tuple[FailedCompaction, ...]
    served: int
    """The boundary at which views begin now; 0 if they hold the whole log."""
    version: int
    continued_lineage: str | None = None
    """The lineage that it continues, if it has a base."""

    def find_node(self, number: int) -> BoundaryNode:
        """Return a boundary's node; raise KeyError if the lineage has no such boundary."""
        return self._by_number[number]

    @cached_property
    def _by_number(self) -> dict[int, BoundaryNode]:
        return {node.number: node for node in self.nodes}

    def find_compaction_number(self, number: int) -> int:
        """Return the boundary's number among the lineage's compactions, from 1 on."""
        return self.nodes.index(self.find_node(number)) + 1

    def list_summarized_blocks(self) -> list[SummarizedBlocks]:
        """Return which boundary removed each block, and that the served summary covers it now.

        Each block is in exactly one entry.
        """
        found: list[SummarizedBlocks] = []
        at, rest = self.served, self.find_node(self.served).covers if self.served else Ranges()
        while at:
            node = self.find_node(at)
            left = rest & node.new_blocks if node.previous else rest
            if left:
                found.append(SummarizedBlocks(left, at, self.served))
            rest -= left
            at = node.previous or 0
        return found[::-1]


def grow_tree(
    decisions: Sequence[Event],
    *,
    session: str,
    namespace: str,
    lineage: str,
    served: int,
    first_call: FirstCallFinder,
    sizes: Mapping[int, PromptSizeChange],
) -> LineageTree:
    """Return the tree of a lineage.

    `decisions` are all its events in order, including inherited ones; `served` is the boundary at
    which its newest view begins.
    """
    boundaries = collect_boundaries(decisions)
    activated = {one.boundary: one for one in decisions if isinstance(one, BoundaryActivated)}
    ended: dict[int, CompactionReverted | PreparationDropped] = {}
    owners: dict[int, str] = {}
    attempts: list[FailedCompaction] = []
    active, prepared, owner, continued = 0, 0, lineage, ""
    for event in decisions:
        match event:
            case CompactionOpened(key=key, lineage=name):
                owner = name if key == session else f"{name} of {key}"
                continued = continued or owner
            case CompactBoundary(originator_version=number):
                owners[number], prepared = owner, number
            case BoundaryActivated(boundary=number):
                active, prepared = number, 0
            case CompactionReverted(boundary=number, to=to):
                ended[number], active, prepared = event, to or 0, 0
            case PreparationDropped(boundary=number):
                ended[number], prepared = event, 0
            case CompactionRejected() | CompactionFailed():
                attempts.append(FailedCompaction(event, active))
            case _:
                pass
    in_use, at = set[int](), served
    while at:
        in_use.add(at)
        at = boundaries[at][0].previous or 0

    def find_status(number: int) -> BoundaryStatus:
        if number in in_use:
            return BoundaryStatus.SERVED if number == served else BoundaryStatus.BUILT_UPON
        if number in activated:
            is_reverted = isinstance(ended.get(number), CompactionReverted)
            return BoundaryStatus.REVERTED if is_reverted else BoundaryStatus.UNDONE
        if number in ended:
            return BoundaryStatus.DROPPED
        return BoundaryStatus.PREPARED if number == prepared else BoundaryStatus.OVERTAKEN

    nodes: list[BoundaryNode] = []
    for number, (boundary, summary) in boundaries.items():
        before = boundaries[boundary.previous][1] if boundary.previous else None
        covers = summary.covers if summary else Ranges()
        inherited = covers & before.covers if before else Ranges()
        activation = activated.get(number)
        nodes.append(
            BoundaryNode(
                boundary=boundary,
                summary=summary,
                lineage=owners[number],
                status=find_status(number),
                new_blocks=covers - inherited,
                inherited_blocks=inherited,
                served_from=activation.effective_from if activation else None,
                first_call=first_call(activation) if activation else None,
                sizes=sizes[number],
                ended_by=ended.get(number),
            )
        )
    return LineageTree(
        session=session,
        namespace=namespace,
        lineage=lineage,
        nodes=tuple(nodes),
        attempts=tuple(attempts),
        served=served,
        version=decisions[-1].originator_version if decisions else 0,
        continued_lineage=continued if continued != lineage else None,
    )

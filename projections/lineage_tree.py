"""Which summary stands for what: the boundaries of one lineage, and what became of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

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
from ..domain.counting.sizes import PromptSizeChange
from ..domain.event import Event
from ..domain.ranges import Ranges
from .phrase_origins import PhraseOrigins

FirstCallFinder = Callable[[BoundaryActivated], int | None]
"""The number of the first call that was sent what was activated; None where there was none."""


class BoundaryStatus(StrEnum):
    """What became of a boundary."""

    SERVED = "served"
    """Views begin at it."""
    BUILT_UPON = "built upon"
    """Views began at it, and the one that is served goes on from it."""
    UNDONE = "undone"
    """Something that it took out was taken back since: views begin at an earlier one again."""
    REVERTED = "reverted"
    PREPARED = "prepared"
    """Recorded, and not served yet."""
    DROPPED = "dropped"
    """Prepared, and given up."""
    OVERTAKEN = "overtaken"
    """Prepared, and another was drawn in its place."""


@dataclass(frozen=True, slots=True)
class BoundaryNode:
    """One boundary, and what its summary stands for."""

    boundary: CompactBoundary
    summary: Summary | None
    lineage: str
    """Where it was decided: this lineage, or the one that it continues."""
    status: BoundaryStatus
    new_blocks: Ranges
    """What left with this boundary."""
    inherited_blocks: Ranges
    """What had left before, and what this summary stands for as well."""
    word_origins: Mapping[int, int]
    """Phrases of the summary by the boundary whose summary first had them; its own included."""
    served_from: int | None
    """The position from which views begin at it; None where it never was served."""
    first_call: int | None
    """The number of the first call that was sent a view that begins at it."""
    sizes: PromptSizeChange
    """What prompts took before it and after."""
    ended_by: CompactionReverted | PreparationDropped | None = None

    @property
    def number(self) -> int:
        return self.boundary.originator_version

    @property
    def previous(self) -> int | None:
        """The boundary that it builds upon."""
        return self.boundary.previous

    @property
    def drawn_at(self) -> datetime:
        return self.boundary.timestamp

    @property
    def covers(self) -> Ranges:
        """All that its summary stands for."""
        return self.summary.covers if self.summary else Ranges()


@dataclass(frozen=True, slots=True)
class FailedCompaction:
    """A draft that was not used, or a compaction that came to nothing or to less."""

    event: CompactionRejected | CompactionFailed
    based_on: int
    """The boundary that was served then; 0 where none was."""


@dataclass(frozen=True, slots=True)
class SummarizedBlocks:
    """Blocks that left together, and the summary that stands for them now."""

    blocks: Ranges
    removed_by: int
    """The boundary that took them out."""
    summary: int
    """The boundary whose summary stands for them."""


@dataclass(frozen=True)
class LineageTree:
    """All boundaries of one lineage, those that it inherits included."""

    session: str
    namespace: str
    lineage: str
    nodes: tuple[BoundaryNode, ...]
    """In the order in which they were drawn."""
    attempts: tuple[FailedCompaction, ...]
    served: int
    """The boundary that views begin at now; 0 where they hold all of the log."""
    version: int
    """Of the lineage."""
    continued_lineage: str | None = None
    """The lineage that it began as, where it is not one of its own from the first version on."""

    def find_node(self, number: int) -> BoundaryNode:
        """Raises KeyError where the lineage has no such boundary."""
        found = next((node for node in self.nodes if node.number == number), None)
        if found is None:
            raise KeyError(number)
        return found

    def find_compaction_number(self, number: int) -> int:
        """Which compaction of the lineage a boundary is: 1 for the first that was drawn."""
        return self.nodes.index(self.find_node(number)) + 1

    def list_path(self, number: int | None = None) -> list[BoundaryNode]:
        """The boundaries that one builds upon, oldest first, and itself; else the served one's."""
        by_number = {node.number: node for node in self.nodes}
        found: list[BoundaryNode] = []
        at = self.served if number is None else number
        while at:
            found.append(by_number[at])
            at = by_number[at].previous or 0
        return found[::-1]

    def list_children(self, number: int) -> list[BoundaryNode]:
        """The boundaries that build upon one directly; upon none where it is 0."""
        return [node for node in self.nodes if (node.previous or 0) == number]

    def list_summarized_blocks(self, number: int | None = None) -> list[SummarizedBlocks]:
        """For all that left: with which boundary it did, and whose summary stands for it.

        As the served boundary has it, or another; each block is in one of them.
        """
        path = self.list_path(number)
        if not path:
            return []
        live = path[-1]
        rest, found = live.covers, list[SummarizedBlocks]()
        for node in reversed(path):
            left = rest & node.new_blocks if node is not path[0] else rest
            if left:
                found.append(SummarizedBlocks(left, node.number, live.number))
            rest -= left
        return found[::-1]


def grow_tree(
    decisions: Iterable[Event],
    *,
    session: str,
    namespace: str,
    lineage: str,
    served: int,
    first_call: FirstCallFinder,
    sizes: Mapping[int, PromptSizeChange],
) -> LineageTree:
    """The tree of a lineage.

    `decisions` are all its events, those that it inherits included, in order; `served` is the
    boundary that its newest view begins at; `sizes` are those of each boundary.
    """
    fold = _LineageFold(session, lineage)
    for event in decisions:
        fold.apply(event)
    return LineageTree(
        session=session,
        namespace=namespace,
        lineage=lineage,
        nodes=tuple(fold.iter_nodes(served, first_call, sizes)),
        attempts=tuple(fold.attempts),
        served=served,
        version=fold.version,
        continued_lineage=fold.begun_as if fold.begun_as != lineage else None,
    )


@dataclass
class _LineageFold:
    """What the events of a lineage have said so far."""

    session: str
    lineage: str
    version: int = 0
    active: int = 0
    prepared: int = 0
    where: str = ""
    """The lineage whose events are read."""
    begun_as: str = ""
    boundaries: dict[int, tuple[CompactBoundary, str]] = field(default_factory=dict)
    summaries: dict[int, Summary] = field(default_factory=dict)
    activated: dict[int, BoundaryActivated] = field(default_factory=dict)
    ended: dict[int, CompactionReverted | PreparationDropped] = field(default_factory=dict)
    attempts: list[FailedCompaction] = field(default_factory=list)

    def apply(self, event: Event) -> None:
        self.version = event.originator_version
        match event:
            case CompactionOpened(key=key, lineage=lineage):
                self.where = lineage if key == self.session else f"{lineage} of {key}"
                self.begun_as = self.begun_as or self.where
            case CompactBoundary(originator_version=number):
                self.boundaries[number] = event, self.where
                self.prepared = number
            case Summary(boundary=number):
                self.summaries[number] = event
            case BoundaryActivated(boundary=number):
                self.activated[number] = event
                self.active, self.prepared = number, 0
            case CompactionReverted(boundary=number, to=to):
                self.ended[number] = event
                self.active, self.prepared = to or 0, 0
            case PreparationDropped(boundary=number):
                self.ended[number] = event
                self.prepared = 0
            case CompactionRejected() | CompactionFailed():
                self.attempts.append(FailedCompaction(event, self.active))
            case _:
                pass

    def iter_nodes(
        self, served: int, first_call: FirstCallFinder, sizes: Mapping[int, PromptSizeChange]
    ) -> Iterator[BoundaryNode]:
        words: dict[int, PhraseOrigins] = {}
        alive = self._find_ancestors(served)
        for number, (boundary, where) in self.boundaries.items():
            summary = self.summaries.get(number)
            before = self.summaries.get(boundary.previous or 0)
            known = words.get(boundary.previous or 0)
            if summary is not None:
                words[number] = PhraseOrigins.from_summary(number, summary.text, known)
            elif known is not None:
                words[number] = known
            covers = summary.covers if summary else Ranges()
            inherited = covers & before.covers if before else Ranges()
            activated = self.activated.get(number)
            yield BoundaryNode(
                boundary=boundary,
                summary=summary,
                lineage=where,
                status=self._find_status(number, served, alive),
                new_blocks=covers - inherited,
                inherited_blocks=inherited,
                word_origins=words[number].count_by_boundary() if summary else {},
                served_from=activated.effective_from if activated else None,
                first_call=first_call(activated) if activated else None,
                sizes=sizes[number],
                ended_by=self.ended.get(number),
            )

    def _find_status(self, number: int, served: int, alive: frozenset[int]) -> BoundaryStatus:
        if number == served:
            return BoundaryStatus.SERVED
        if number in alive:
            return BoundaryStatus.BUILT_UPON
        if number in self.activated:
            is_reverted = isinstance(self.ended.get(number), CompactionReverted)
            return BoundaryStatus.REVERTED if is_reverted else BoundaryStatus.UNDONE
        if number in self.ended:
            return BoundaryStatus.DROPPED
        return BoundaryStatus.PREPARED if number == self.prepared else BoundaryStatus.OVERTAKEN

    def _find_ancestors(self, number: int) -> frozenset[int]:
        """A boundary and all that it builds upon."""
        found: set[int] = set()
        while number:
            found.add(number)
            number = self.boundaries[number][0].previous or 0
        return frozenset(found)

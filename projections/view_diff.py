"""Compares two views of a session: blocks that left or came, summaries, and lost facts."""

from dataclasses import dataclass

from ..domain.blocks import Block, BlockKind, ToolCall
from ..domain.compaction_events import CompactBoundary, Summary
from ..domain.ranges import Ranges
from ..domain.token_estimate import KindShare, PromptSizeChange, compute_kind_shares
from .compaction_window import make_item
from .history_view import HistoryView
from .lost_facts import LostFact, SessionText, find_lost_facts
from .search_texts import make_excerpt
from .view_content import Coordinate, ViewEntry

LINE_CHARS = 200
"""The most characters of a block's first line."""


@dataclass(frozen=True, slots=True)
class DiffedBlock:
    """A block that only one of the views has."""

    position: int
    turn: int
    kind: BlockKind
    name: str | None
    """For a tool call its tool, for a document its path."""
    tokens: int
    """Estimated size of what the view shows."""
    line: str
    """The beginning of its text, in one line."""


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """A block that shows differently in the two views."""

    position: int
    kind: BlockKind
    tokens_before: int
    tokens: int


@dataclass(frozen=True)
class ViewDiff:
    """The changes from one view to another; the reverse comparison is a mirror image."""

    session: str
    namespace: str
    before: Coordinate
    after: Coordinate
    sizes: PromptSizeChange
    """The sizes of the views' prompts."""
    boundary_before: CompactBoundary | None
    boundary: CompactBoundary | None
    """The boundaries at which the views begin; None for a view of the whole log."""
    summary_before: Summary | None
    summary: Summary | None
    removed: tuple[DiffedBlock, ...]
    """Blocks that only the old view has, in order."""
    added: tuple[DiffedBlock, ...]
    """Blocks that only the new view has, in order."""
    changed: tuple[ChangedBlock, ...]
    lost_facts: tuple[LostFact, ...]
    """Facts that only the old view contains, the most important first."""
    gained_facts: tuple[LostFact, ...]
    """Facts that only the new view contains: from later blocks, or invented by a summary."""
    is_request_changed: bool
    """Whether system prompt, tools or settings differ."""

    @property
    def tokens_before(self) -> int:
        return self.sizes.before

    @property
    def tokens(self) -> int:
        return self.sizes.after

    @property
    def is_empty(self) -> bool:
        """Whether both views tell a model the same."""
        moved = self.removed or self.added or self.changed or self.lost_facts or self.gained_facts
        return not (moved or self.is_request_changed or self.has_new_summary)

    @property
    def has_new_summary(self) -> bool:
        old, new = self.summary_before, self.summary
        return (new and new.text) != (old and old.text)

    @property
    def summarized_blocks(self) -> Ranges:
        return self.handles & self.summary.covers if self.summary else Ranges()

    @property
    def unmentioned_blocks(self) -> Ranges:
        """The removed blocks that nothing in the new view covers."""
        return self.handles - self.summarized_blocks

    @property
    def handles(self) -> Ranges:
        return Ranges.of(block.position for block in self.removed)

    @property
    def shares(self) -> tuple[KindShare, ...]:
        return compute_kind_shares((block.kind, block.tokens) for block in self.removed)


def compare_views(
    before: HistoryView, after: HistoryView, log: SessionText, sizes: PromptSizeChange
) -> ViewDiff:
    """Return the changes from `before` to `after`; `log` is the whole session."""
    old = {entry.position: entry for entry in before.entries}
    new = {entry.position: entry for entry in after.entries}
    left = [entry for position, entry in old.items() if position not in new]
    came = [entry for position, entry in new.items() if position not in old]
    both = [(old[position], entry) for position, entry in new.items() if position in old]
    return ViewDiff(
        session=after.session,
        namespace=after.namespace,
        before=before.coordinate,
        after=after.coordinate,
        sizes=sizes,
        boundary_before=before.boundary,
        boundary=after.boundary,
        summary_before=before.summary,
        summary=after.summary,
        removed=tuple(map(_make_diffed_block, left)),
        added=tuple(map(_make_diffed_block, came)),
        changed=tuple(
            ChangedBlock(now.position, now.block.kind, then.tokens, now.tokens)
            for then, now in both
            if then.shown != now.shown
        ),
        lost_facts=find_lost_facts(before, after, map(make_item, left), log),
        gained_facts=find_lost_facts(after, before, map(make_item, came), log),
        is_request_changed=_list_request_parts(before) != _list_request_parts(after),
    )


def _make_diffed_block(entry: ViewEntry) -> DiffedBlock:
    block = entry.block
    name = block.name if isinstance(block, Block | ToolCall) else None
    line = make_excerpt(entry.text, LINE_CHARS)
    return DiffedBlock(entry.position, entry.turn, block.kind, name, entry.tokens, line)


def _list_request_parts(view: HistoryView) -> tuple[object, ...]:
    return view.system_prompt, view.tool_definitions, view.request_settings

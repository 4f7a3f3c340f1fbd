"""Compares two views of a session: what left, what came in, what stands for it, what is lost."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...domain.blocks import Block, Kind, ToolCall
from ...domain.compaction_events import CompactBoundary, Summary
from ...domain.counting.sizes import PromptSizeChange
from ...domain.item import Item
from ...domain.kind_shares import KindShare, compute_kind_shares
from ...domain.ranges import Ranges
from ..history_view import HistoryView
from ..view_content import Coordinate
from ..view_entry import ViewEntry
from .lost_facts import LostFact, find_lost_facts
from .session_text import SessionText

_EXCERPT_CHARS = 200
"""Characters of a block's first line."""


@dataclass(frozen=True, slots=True)
class DiffedBlock:
    """A block that one of the views has, and the other has not."""

    position: int
    turn: int
    kind: Kind
    name: str | None
    """Of a tool's call its tool, of a document its path."""
    tokens: int
    """Estimated size of what shows of it."""
    line: str
    """The beginning of its text, in one line."""


@dataclass(frozen=True, slots=True)
class ChangedBlock:
    """A block of both views that does not show the same in them."""

    position: int
    kind: Kind
    tokens_before: int
    tokens: int


@dataclass(frozen=True)
class ViewDiff:
    """What became of one view in another; compared the other way round, it is this mirrored."""

    session: str
    namespace: str
    before: Coordinate
    after: Coordinate
    sizes: PromptSizeChange
    """What prompts of the views took."""
    boundary_before: CompactBoundary | None
    boundary: CompactBoundary | None
    """What the views begin at; None for a view that holds all of the log."""
    summary_before: Summary | None
    summary: Summary | None
    """What stands in the views for what they have not."""
    removed: tuple[DiffedBlock, ...]
    """Blocks of the old view that the new one has not, in order."""
    added: tuple[DiffedBlock, ...]
    """Blocks of the new view that the old one had not, in order."""
    changed: tuple[ChangedBlock, ...]
    lost_facts: tuple[LostFact, ...]
    """Facts that the old view told and that are nowhere in the new one, what matters most first."""
    gained_facts: tuple[LostFact, ...]
    """Facts that the new view tells and that were nowhere in the old one: what came in since, and
    what a summary says that nobody had said."""
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
        """Whether a model is told the same by both views."""
        moved = self.removed or self.added or self.changed or self.lost_facts or self.gained_facts
        return not (moved or self.is_request_changed or self.has_new_summary)

    @property
    def has_new_summary(self) -> bool:
        return _get_text(self.summary) != _get_text(self.summary_before)

    @property
    def summarized_blocks(self) -> Ranges:
        """Of what left, the blocks that a summary in the new view stands for."""
        return self.handles & self.summary.covers if self.summary else Ranges()

    @property
    def unmentioned_blocks(self) -> Ranges:
        """Of what left, the blocks that nothing in the new view stands for."""
        return self.handles - self.summarized_blocks

    @property
    def handles(self) -> Ranges:
        """Of all that left."""
        return Ranges.of(block.position for block in self.removed)

    @property
    def shares(self) -> tuple[KindShare, ...]:
        """What left by kind, the most tokens first."""
        return compute_kind_shares((block.kind, block.tokens) for block in self.removed)


def compare_views(
    before: HistoryView, after: HistoryView, log: SessionText, sizes: PromptSizeChange
) -> ViewDiff:
    """What `after` has and has not of `before`; `log` is the whole session of both."""
    old = {entry.position: entry for entry in before.entries}
    new = {entry.position: entry for entry in after.entries}
    left = [entry for position, entry in old.items() if position not in new]
    came = [entry for position, entry in new.items() if position not in old]
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
        changed=tuple(_list_changed_blocks(old, new)),
        lost_facts=find_lost_facts(before, after, map(_make_item, left), log),
        gained_facts=find_lost_facts(after, before, map(_make_item, came), log),
        is_request_changed=_list_request_parts(before) != _list_request_parts(after),
    )


def make_first_line(text: str) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text[: 2 * _EXCERPT_CHARS].split())[:_EXCERPT_CHARS]


def _make_diffed_block(entry: ViewEntry) -> DiffedBlock:
    block = entry.block
    name = block.name if isinstance(block, Block | ToolCall) else None
    line = make_first_line(entry.text)
    return DiffedBlock(entry.position, entry.turn, block.kind, name, entry.tokens, line)


def _list_changed_blocks(
    old: Mapping[int, ViewEntry], new: Mapping[int, ViewEntry]
) -> list[ChangedBlock]:
    both = ((old[position], entry) for position, entry in new.items() if position in old)
    return [
        ChangedBlock(now.position, now.block.kind, then.tokens, now.tokens)
        for then, now in both
        if then.shown != now.shown
    ]


def _make_item(entry: ViewEntry) -> Item:
    return Item(entry.position, entry.block, entry.turn, entry.tokens, entry.call)


def _list_request_parts(view: HistoryView) -> tuple[object, ...]:
    return view.system_prompt, view.tool_definitions, view.request_settings


def _get_text(summary: Summary | None) -> str | None:
    return summary.text if summary else None

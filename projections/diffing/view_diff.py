"""Compares two views of a session: what left, what came in, what stands for it, what is lost."""

from collections.abc import Mapping
from dataclasses import dataclass

from ...domain.blocks import Block, Kind, ToolCall
from ...domain.compaction_events import CompactBoundary, Summary
from ...domain.counting.sizes import Sizes
from ...domain.item import Item
from ...domain.ranges import Ranges
from ...domain.shares import Share, shares_of
from ..entry import Entry
from ..history_view import Coordinate, HistoryView
from .log_text import Log
from .lost_facts import LostFact, lost_facts

EXCERPT = 200
"""Characters of a block's first line."""


@dataclass(frozen=True, slots=True)
class Listed:
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
class Reshown:
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
    sizes: Sizes
    """What prompts of the views took."""
    boundary_before: CompactBoundary | None
    boundary: CompactBoundary | None
    """What the views begin at; None for a view that holds all of the log."""
    summary_before: Summary | None
    summary: Summary | None
    """What stands in the views for what they have not."""
    left: tuple[Listed, ...]
    """Blocks of the old view that the new one has not, in order."""
    came: tuple[Listed, ...]
    """Blocks of the new view that the old one had not, in order."""
    reshown: tuple[Reshown, ...]
    lost: tuple[LostFact, ...]
    """Facts that the old view told and that are nowhere in the new one, what matters most first."""
    gained: tuple[LostFact, ...]
    """Facts that the new view tells and that were nowhere in the old one: what came in since, and
    what a summary says that nobody had said."""
    request_changed: bool
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
        moved = self.left or self.came or self.reshown or self.lost or self.gained
        return not (moved or self.request_changed or self.has_new_summary)

    @property
    def has_new_summary(self) -> bool:
        return _text(self.summary) != _text(self.summary_before)

    @property
    def stands_for(self) -> Ranges:
        """Of what left, the blocks that a summary in the new view stands for."""
        return self.handles & self.summary.covers if self.summary else Ranges()

    @property
    def without_a_word(self) -> Ranges:
        """Of what left, the blocks that nothing in the new view stands for."""
        return self.handles - self.stands_for

    @property
    def handles(self) -> Ranges:
        """Of all that left."""
        return Ranges.of(block.position for block in self.left)

    @property
    def shares(self) -> tuple[Share, ...]:
        """What left by kind, the most tokens first."""
        return shares_of((block.kind, block.tokens) for block in self.left)


def view_diff(before: HistoryView, after: HistoryView, log: Log, sizes: Sizes) -> ViewDiff:
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
        left=tuple(map(_listed, left)),
        came=tuple(map(_listed, came)),
        reshown=tuple(_reshown(old, new)),
        lost=lost_facts(before, after, map(_item, left), log),
        gained=lost_facts(after, before, map(_item, came), log),
        request_changed=_request(before) != _request(after),
    )


def first_line(text: str) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text[: 2 * EXCERPT].split())[:EXCERPT]


def _listed(entry: Entry) -> Listed:
    block = entry.block
    name = block.name if isinstance(block, Block | ToolCall) else None
    line = first_line(entry.text)
    return Listed(entry.position, entry.turn, block.kind, name, entry.tokens, line)


def _reshown(old: Mapping[int, Entry], new: Mapping[int, Entry]) -> list[Reshown]:
    both = ((old[position], entry) for position, entry in new.items() if position in old)
    return [
        Reshown(now.position, now.block.kind, then.tokens, now.tokens)
        for then, now in both
        if then.shown != now.shown
    ]


def _item(entry: Entry) -> Item:
    return Item(entry.position, entry.block, entry.turn, entry.tokens, entry.call)


def _request(view: HistoryView) -> tuple[object, ...]:
    return view.system_prompt, view.tool_definitions, view.request_settings


def _text(summary: Summary | None) -> str | None:
    return summary.text if summary else None

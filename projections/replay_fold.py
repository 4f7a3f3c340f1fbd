"""Folds the view of a replay with the same fold that serves agents, over a log in memory."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from ..domain.compaction_events import CompactBoundary
from ..domain.item import MessageRuns, WindowItem
from ..domain.ranges import Ranges
from ..domain.session_events import (
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from .block_statuses import RecordedBoundary
from .compaction_window import find_recalled, make_item, make_items, make_recalled_items
from .history_view import HistoryFold, HistoryView
from .recording import RecordedCall, Recording
from .view_content import (
    Coordinate,
    RecordedEvent,
    ViewEntry,
    encode_text,
    estimate_system_and_tools,
)

_REQUEST_EVENTS = (SystemPromptSet, ToolsSet, RequestSettingsSet)
_ITEM_CHANGING_EVENTS = frozenset(
    {*_REQUEST_EVENTS, BlocksRetracted, BlockPinned, BlockUnpinned, BlocksHidden}
)


def _ignore_call(_: ModelCalled) -> None:
    """Ignore recorded calls: they saw other views, and say nothing about the size of this one."""


@dataclass
class ReplayFold:
    """A view that is advanced event by event, and restarted at each boundary.

    Sizes are the recording's: estimated, or calibrated by its provider's reports.
    """

    recording: Recording
    lineage: str
    history: HistoryFold = field(init=False)
    version: int = 0
    unchanged: int = 0
    """Tokens at the beginning of the prompt that the newest call had too."""

    def __post_init__(self) -> None:
        self.history = HistoryFold(sees=_ignore_call)
        self.boundaries: dict[int, RecordedBoundary] = {}
        """Those that views can begin at, by number."""
        self._effective_from = 0
        self._retracted = Ranges()
        self._items: list[WindowItem] | None = None
        """The items up to `_items_end`, as if no call were open; None to make all of them again."""
        self._items_end = 0
        self._runs = MessageRuns()
        self.worked_out: dict[Hashable, Any] = {}
        """What a policy computed from the items; kept as long as these only grow at the end."""
        self.request_tokens = 0
        """Tokens apart from blocks and summary: the system prompt and the tools."""
        self._summary_tokens = 0

    # Advancing

    def advance(self, position: int) -> None:
        for recorded in self.recording.iter_events(range(self.history.position + 1, position + 1)):
            if type(recorded.event) in _ITEM_CHANGING_EVENTS:
                self._apply_change(recorded)
            else:
                self.history.apply(recorded)
                if entry := self.history.entries.get(recorded.position):
                    self._record_place(entry)
        self.history.position = max(self.history.position, position)

    def _record_place(self, entry: ViewEntry) -> None:
        runs, boundary, call = self._runs, self.history.boundary, entry.call
        is_late = runs.add(entry.position, entry.block, call) < runs.newest
        # Next to a carried call, blocks that were pinned since may show again.
        was_carried = call is not None and boundary is not None and call <= boundary.after
        if is_late or was_carried:
            self._forget_items()

    def _forget_items(self) -> None:
        """Drop everything known of the items, because they changed before their end."""
        self._items, self.worked_out = None, {}

    def _apply_change(self, recorded: RecordedEvent) -> None:
        self._forget_items()
        event, history = recorded.event, self.history
        if isinstance(event, BlocksRetracted):
            self._retracted |= event.positions
            self._limit_unchanged(self._count_tokens_before(event.positions))
            history.apply(recorded)
            self._runs = _make_runs(history)
            if history.is_summary_undone():
                self._leave_undone_boundaries()
                self._limit_unchanged(self.request_tokens)
        else:
            history.apply(recorded)
        if isinstance(event, _REQUEST_EVENTS):
            self._limit_unchanged(0)
            self.request_tokens = estimate_system_and_tools(history.system, history.tools)

    def measure_overhead(self, call: RecordedCall) -> None:
        """Set the overhead to the one reported for a call, if there is one."""
        if calibration := self.recording.calibration:
            self.request_tokens = calibration.overhead_by_call[call.number - 1]

    def set_reported_prompt(self, prompt: int) -> None:
        """Set the prompt to the tokens that were reported for this view."""
        self.request_tokens += prompt - self.tokens

    def record_sent(self) -> None:
        """Record that a model was sent the current view, so that a cache may hold all of it."""
        self.unchanged = self.tokens

    # Boundaries

    def find_leaving(self, boundary: CompactBoundary) -> Ranges:
        """Return the blocks of the view that are not in it from `boundary` on."""
        stood = Ranges.of(at for at, one in self.history.entries.items() if one.tokens)
        return (stood & Ranges.span(1, boundary.after)) - boundary.kept

    def serve(self, boundary: int, version: int) -> int:
        """Begin the view at a boundary, or at the start of the log for 0.

        Returns the tokens at its beginning that are unchanged.
        """
        before = self.history
        self.version = version
        self._effective_from = before.position
        self._begin_at(boundary, before.position)
        # A rewind between the compaction and its first call may have undone it.
        self._leave_undone_boundaries()
        same = self._count_same_tokens(before)
        self._limit_unchanged(same)
        return same

    def _leave_undone_boundaries(self) -> None:
        """Continue with the newest boundary that no retraction has undone."""
        position = self.history.position
        while self.history.boundary is not None and self.history.is_summary_undone():
            self._begin_at(self.history.boundary.previous or 0, position)

    def _begin_at(self, number: int, position: int) -> None:
        boundary, summary = self.boundaries[number] if number else (None, None)
        # A stored summary has a digest keyed by the database's secret; this one has no key.
        digest = blake2b(encode_text(summary.text), digest_size=16).digest() if summary else b""
        effective = self._effective_from if number else 0
        history = HistoryFold(boundary, summary, digest, effective, sees=_ignore_call)
        after = boundary.after if boundary else 0
        kept = boundary.kept if boundary else Ranges()
        # An inherited boundary may include positions that the fork does not share.
        begins = (kept | Ranges.span(after + 1, position)) & Ranges.span(1, position)
        history.apply_all(self.recording.iter_events(begins))
        before = self.history
        history.system, history.tools = before.system, before.tools
        history.settings = before.settings
        history.position = position
        self.history = history
        self._runs = _make_runs(history)
        self._forget_items()
        self._summary_tokens = summary.tokens if summary else 0

    # State

    @property
    def tokens(self) -> int:
        return self.request_tokens + self._summary_tokens + self.history.tokens

    def make_view(self) -> HistoryView:
        coordinate = Coordinate(self.history.position, self.lineage, self.version)
        recording = self.recording
        return self.history.make_view(recording.key, recording.namespace, coordinate, None)

    def list_items(self) -> Sequence[WindowItem]:
        """Return what `make_items` would; items that only grew at their end are not made again."""
        history = self.history
        if self._items is None:
            entries = tuple(history.entries.values())
            self._items = made = make_items(
                entries,
                self._list_recalled(),
                sizes=lambda: (entry.tokens for entry in entries),
                open_calls=frozenset(),
                pinned=history.pinned,
                broken_off=history.broken_off,
            )
        else:
            made = self._items
            for position in range(self._items_end + 1, history.position + 1):
                if entry := history.entries.get(position):
                    item, is_pinned = make_item(entry), position in history.pinned
                    made.append(replace(item, is_pinned=True) if is_pinned else item)
        self._items_end = history.position
        if history.broken_off:
            self._items = None  # later blocks may complete earlier ones; this is rare
        waiting = history.open_calls
        if not waiting:
            return tuple(made)
        return [replace(one, is_open=True) if one.position in waiting else one for one in made]

    def iter_originals(self, positions: Ranges) -> Iterable[WindowItem]:
        """Return blocks of the log as items, whatever their status."""
        return make_recalled_items(self.recording.iter_events(positions))

    def _list_recalled(self) -> tuple[ViewEntry, ...]:
        """Return the blocks that earlier boundaries removed and that were pinned since."""
        missing = find_recalled(self.history) - self._retracted
        pinned = HistoryFold().apply_all(self.recording.iter_events(missing))
        return tuple(pinned.entries.values())

    # Unchanged tokens

    def _limit_unchanged(self, tokens: int) -> None:
        self.unchanged = min(self.unchanged, tokens)

    def _count_tokens_before(self, positions: Ranges) -> int:
        before = self.request_tokens + self._summary_tokens
        for position, entry in self.history.entries.items():
            if position in positions:
                break
            before += entry.tokens
        return before

    def _count_same_tokens(self, before: HistoryFold) -> int:
        now = self.history
        text, earlier = (one.summary.text if one.summary else None for one in (now, before))
        if text != earlier:
            return self.request_tokens
        same = self.request_tokens + self._summary_tokens
        for one, other in zip(now.entries.values(), before.entries.values(), strict=False):
            if one.position != other.position or one.shown != other.shown:
                break
            same += one.tokens
        return same


def _make_runs(history: HistoryFold) -> MessageRuns:
    runs = MessageRuns()
    for entry in history.entries.values():
        runs.add(entry.position, entry.block, entry.call)
    return runs

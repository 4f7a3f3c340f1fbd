"""The view of a replay: the very fold that serves agents, over a log that is held in memory."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ...domain.block_groups import MessageRuns
from ...domain.compaction import CompactionState
from ...domain.compaction_events import CompactBoundary, Summary
from ...domain.item import Item
from ...domain.ranges import Ranges
from ...domain.session_events import (
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolsSet,
)
from ...domain.token_estimate import estimate_text
from ..fingerprint import encode_text
from ..history_view import HistoryFold, HistoryView
from ..recorded_event import RecordedEvent
from ..view_content import Coordinate
from ..view_entry import ViewEntry
from .recording import RecordedCall, Recording
from .view_items import ViewItems

_REQUEST_EVENTS = (SystemPromptSet, ToolsSet, RequestSettingsSet)
_ITEM_CHANGING_EVENTS = frozenset(
    {*_REQUEST_EVENTS, BlocksRetracted, BlockPinned, BlockUnpinned, BlocksHidden}
)
_BoundaryAndSummary = tuple[CompactBoundary, Summary | None]


def _ignore_call(_: ModelCalled) -> None:
    """Recorded calls saw other views than this one, and tell nothing of its size."""


@dataclass
class ReplayFold:
    """A view that is advanced event by event, and begun anew at each boundary.

    Sizes are the recording's: estimates, or what its provider's reports make of them.
    """

    recording: Recording
    lineage: str
    history: HistoryFold = field(init=False)
    version: int = 0
    """Of the lineage, as far as it was decided."""
    unchanged: int = 0
    """Tokens at the beginning of the prompt that stood there at the newest call as well."""

    def __post_init__(self) -> None:
        self.history = HistoryFold(sees=_ignore_call)
        self._drawn: dict[int, _BoundaryAndSummary] = {}
        self._effective_from = 0
        self._retracted = Ranges()
        self._items = ViewItems()
        self._runs = MessageRuns()
        self.worked_out: dict[Hashable, Any] = {}
        """What a policy worked out of the items, for as long as these only become more."""
        self.request_tokens = 0
        """Of what is sent besides blocks and summary: the system prompt, the tools."""
        self._summary_tokens = 0

    # Going on

    def advance(self, position: int) -> None:
        """Take in the log up to a position."""
        for at in range(self.history.position, position):
            recorded = self.recording.log[at]
            if type(recorded.event) in _ITEM_CHANGING_EVENTS:
                self._apply_change(recorded)
            else:
                self.history.apply(recorded)
                self._record_place(recorded.position)

    def _record_place(self, position: int) -> None:
        """Look where the block at a position is shown, if there is one."""
        entry = self.history.entries.get(position)
        if entry is None:
            return
        runs, boundary, call = self._runs, self.history.boundary, entry.call
        is_late = runs.add(position, entry.block, call) < runs.newest
        # Beside a call that was carried, blocks that were pinned since may be shown again.
        was_carried = call is not None and boundary is not None and call <= boundary.after
        if is_late or was_carried:
            self._forget_items()

    def _forget_items(self) -> None:
        """What is known of the items does not hold any more: not only their end has changed."""
        self._items.forget()
        self.worked_out = {}

    def _apply_change(self, recorded: RecordedEvent) -> None:
        self._forget_items()
        event = recorded.event
        if isinstance(event, BlocksRetracted):
            self._retracted |= event.positions
            self._limit_unchanged(self._count_tokens_before(event.positions))
        elif isinstance(event, _REQUEST_EVENTS):
            self._limit_unchanged(0)
        self.history.apply(recorded)
        if isinstance(event, BlocksRetracted):
            self._runs = _make_runs(self.history)
            if self.history.is_summary_undone():
                self._restart_if_undone()
        elif isinstance(event, _REQUEST_EVENTS):
            self.request_tokens = estimate_overhead(self.history)

    def measure_overhead(self, call: RecordedCall) -> None:
        """Take what a call was sent besides the blocks from what was reported, where it was."""
        if calibration := self.recording.calibration:
            self.request_tokens = calibration.overhead_by_call[call.number - 1]

    def set_reported_prompt(self, prompt: int) -> None:
        """Take the prompt to have as many tokens as were reported of this very view."""
        self.request_tokens += prompt - self.tokens

    def record_sent(self) -> None:
        """A model was sent the view as it stands now: a cache may hold all of it from now on."""
        self.unchanged = self.tokens

    # Boundaries

    def add_boundary(self, boundary: CompactBoundary, summary: Summary | None) -> None:
        """Remember a boundary, so that views can begin at it."""
        self._drawn[boundary.originator_version] = boundary, summary

    def serve(self, boundary: int, version: int) -> int:
        """Begin the view at a boundary, or at the beginning of the log where it is 0.

        Returns the tokens at its beginning that are what they were.
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

    def _restart_if_undone(self) -> None:
        """Go on with the newest boundary that no retraction has undone."""
        self._leave_undone_boundaries()
        self._limit_unchanged(self.request_tokens)

    def _leave_undone_boundaries(self) -> None:
        position = self.history.position
        while self.history.boundary is not None and self.history.is_summary_undone():
            self._begin_at(self.history.boundary.previous or 0, position)

    def _begin_at(self, number: int, position: int) -> None:
        boundary, summary = self._drawn[number] if number else (None, None)
        # Written down, a summary has a digest by the database's secret; here by none.
        digest = blake2b(encode_text(summary.text), digest_size=16).digest() if summary else b""
        effective = self._effective_from if number else 0
        history = HistoryFold(boundary, summary, digest, effective, sees=_ignore_call)
        after = boundary.after if boundary else 0
        kept = boundary.kept if boundary else Ranges()
        log = self.recording.log
        # What a fork inherits may have been decided about later positions than it shares.
        begins = (kept | Ranges.span(after + 1, position)) & Ranges.span(1, position)
        history.apply_all(log[at - 1] for at in begins)
        before = self.history
        history.system, history.tools, history.settings = (
            before.system,
            before.tools,
            before.settings,
        )
        history.position = position
        self.history = history
        self._runs = _make_runs(history)
        self.worked_out = {}
        self._summary_tokens = summary.tokens if summary else 0

    def resume(self, position: int, state: CompactionState, version: int) -> None:
        """Go on at a position where a lineage left off, of which all that it drew is known."""
        self.advance(position)
        self.version = version
        if state.active:
            self._effective_from = state.effective_from
            self._begin_at(state.active, position)
            self._restart_if_undone()
        self.unchanged = self.tokens

    # What it is like

    @property
    def tokens(self) -> int:
        """Tokens of the prompt as it stands now."""
        return self.request_tokens + self._summary_tokens + self.history.tokens

    def make_view(self) -> HistoryView:
        """What a model is sent now."""
        coordinate = Coordinate(self.history.position, self.lineage, self.version)
        recording = self.recording
        return self.history.make_view(recording.key, recording.namespace, coordinate, None)

    def list_items(self) -> Sequence[Item]:
        """The blocks of the view, as a policy sees them."""
        return self._items.update(self.history, self._list_recalled)

    def iter_originals(self, positions: Ranges) -> Iterable[Item]:
        """Blocks of the log, whatever became of them."""
        log = self.recording.log
        history = HistoryFold().apply_all(log[position - 1] for position in positions)
        return [
            Item(entry.position, entry.block, entry.turn, entry.tokens, entry.call)
            for entry in history.entries.values()
        ]

    def _list_recalled(self) -> tuple[ViewEntry, ...]:
        """Blocks that earlier boundaries took out and that were pinned since."""
        history = self.history
        if history.boundary is None or not history.pinned:
            return ()
        decided = Ranges.span(1, history.boundary.after)
        missing = (history.pinned & decided) - Ranges.of(history.entries) - self._retracted
        log = self.recording.log
        pinned = HistoryFold().apply_all(log[position - 1] for position in missing)
        return tuple(pinned.entries.values())

    # What stays as it was

    def _limit_unchanged(self, tokens: int) -> None:
        self.unchanged = min(self.unchanged, tokens)

    def _count_tokens_before(self, positions: Ranges) -> int:
        """Tokens in front of the first of these blocks."""
        before = self.request_tokens + self._summary_tokens
        for position, entry in self.history.entries.items():
            if position in positions:
                break
            before += entry.tokens
        return before

    def _count_same_tokens(self, before: HistoryFold) -> int:
        """Tokens at the beginning of the prompt that are what they were before."""
        now = self.history
        said = (
            (now.summary.text if now.summary else None),
            (before.summary.text if before.summary else None),
        )
        if said[0] != said[1]:
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


def estimate_overhead(history: HistoryFold) -> int:
    """Tokens of the system prompt and the tools."""
    system = estimate_text(history.system.event.text) if history.system else 0  # type: ignore[attr-defined]
    tools = estimate_text(str(history.tools.event.tools)) if history.tools else 0  # type: ignore[attr-defined]
    return system + tools

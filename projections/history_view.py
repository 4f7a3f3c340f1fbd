"""Folds a boundary and later events into the view that a model is sent."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, overload

from ..domain.blocks import ASSISTANT_KINDS, UNSENT_KINDS, AnyBlock, ToolResult
from ..domain.compaction_events import CompactBoundary, Summary, Trim
from ..domain.ranges import Ranges
from ..domain.session_events import (
    INTERRUPTED_STOP_REASONS,
    BlockAppended,
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    Ends,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    ToolsSet,
    TurnStarted,
)
from ..domain.token_estimate import estimate_text
from ..domain.trims import trim_text
from .context_usage import CallSample, ContextUsage, ContextUsageTracker, RequestOverhead
from .rendering.catalog import (
    AnthropicRequest,
    OpenAIChatRequest,
    OpenAIResponsesRequest,
    render_view,
)
from .view_content import Coordinate, RecordedEvent, ViewContent, ViewEntry

CallFilter = Callable[[ModelCalled], bool | None]
"""Returns True if a call saw this view, False for one that a boundary has ended, None for another
lineage's."""


@dataclass(frozen=True)
class HistoryView(ViewContent):
    """A view at one coordinate; the same coordinate always gives an equal view."""

    @overload
    def render(self, name: Literal["anthropic", "anthropic-cached"]) -> AnthropicRequest: ...

    @overload
    def render(self, name: Literal["openai-chat"]) -> OpenAIChatRequest: ...

    @overload
    def render(self, name: Literal["openai-responses"]) -> OpenAIResponsesRequest: ...

    @overload
    def render(self, name: str) -> Mapping[str, Any]: ...

    def render(self, name: str) -> Any:
        """Return the body of the request that sends this view to a provider.

        `name` is `anthropic`, `anthropic-cached`, `openai-chat`, `openai-responses` or `neutral`,
        or one of these in an older version: `anthropic/1`. The body shares nothing with the view.
        Raises InvalidSettingError for any other name.
        """
        return render_view(self, name)


class HistoryFold:
    """The fold of one view: begun at a boundary, advanced event by event.

    Live, resumed, replayed and audited views all come from here, so that they cannot differ.
    """

    def __init__(
        self,
        boundary: CompactBoundary | None = None,
        summary: Summary | None = None,
        summary_digest: bytes = b"",
        effective_from: int = 0,
        *,
        usage_tracker: ContextUsageTracker | None = None,
        sees: CallFilter = lambda _: True,
    ) -> None:
        self.effective_from = effective_from
        self.usage_tracker = usage_tracker or ContextUsageTracker()
        self._sees = sees
        self.boundary = boundary
        self.summary = summary
        self.summary_digest = summary_digest
        self.position = 0
        self.entries: dict[int, ViewEntry] = {}
        self.open_calls: dict[int, str] = {}
        self.system: RecordedEvent | None = None
        self.tools: RecordedEvent | None = None
        self.settings: RecordedEvent | None = None
        self.last_call: ModelCalled | None = None
        """The newest call with a reported size."""
        self.answered = 0
        """The position of the model's newest block or the newest record of a call."""
        self.broken_off: dict[int, float] = {}
        """Interrupted calls: the position they saw last, to the end of their answers."""
        self.pinned = boundary.pinned if boundary else Ranges()
        self._was_pinned = frozenset(self.pinned)
        self.hides: dict[int, str | None] = {}
        self.retracted = Ranges()
        self.reopened = Ranges()
        """Calls that are open again because their results were retracted."""
        self._gone: list[tuple[int, ViewEntry]] = []
        """Entries retracted since the newest call was sent, with the retraction's position."""
        self.undone_at = 0
        """The position of the first retraction of a summarized block; 0 for none."""
        self._called = -1
        """The position that the newest call saw last."""
        self.tokens = 0
        trims = boundary.trims if boundary else ()
        replacements = boundary.replacements if boundary else ()
        self._trims = {trim.position: trim for trim in trims}
        self._replacements = {r.position: r.text for r in replacements}

    def apply_all(self, log: Iterable[RecordedEvent]) -> "HistoryFold":
        for recorded in log:
            self.apply(recorded)
        return self

    def apply(self, recorded: RecordedEvent) -> None:
        """Advance by one event: first the boundary's kept events, then all that follow it."""
        position = self.position = recorded.position
        match recorded.event:
            # The most frequent events come first.
            case ToolCalled(block=block, turn=turn):
                self.answered = position
                self.open_calls[position] = block.tool_call_id
                self._show(recorded, block, turn)
            case ToolReturned(block=block, turn=turn, call=call, shown=ends):
                self.open_calls.pop(call, None)
                self._show(recorded, block, turn, call, ends)
            case BlockAppended(block=block, turn=turn):
                if block.kind in ASSISTANT_KINDS:
                    self.answered = position
                if block.kind not in UNSENT_KINDS:
                    self._show(recorded, block, turn)
            case TurnStarted():
                pass
            case ToolCallAbandoned(tool_call_id=name, reason=reason, turn=turn, call=call):
                self.open_calls.pop(call, None)
                answer = ToolResult(
                    tool_call_id=name, content=f"[abandoned: {reason}]", is_error=True
                )
                self._show(recorded, answer, turn, call)
            case SystemPromptSet():
                self.system = recorded
            case ToolsSet():
                self.tools = recorded
            case RequestSettingsSet():
                self.settings = recorded
            case ModelCalled() as call:
                self.answered = position
                self._record_interrupted(call)
                if call.context is not None:
                    self.last_call = call
                    self._record_call_sample(call)
            case BlocksRetracted(positions=positions, reopened=reopened):
                if self._is_after_boundary(position):
                    self.reopened |= Ranges.of(reopened.values())
                    self._retract(positions)
                    self.open_calls |= {at: call for call, at in reopened.items()}
            case BlockPinned(positions=positions):
                if self._is_after_boundary(position):
                    self.pinned |= positions
            case BlockUnpinned(positions=positions):
                if self._is_after_boundary(position):
                    self.pinned -= positions
            case BlocksHidden(positions=positions, replacement=text):
                if self._is_after_boundary(position):
                    self.hides |= dict.fromkeys(positions, text)
            case _:
                pass

    def _is_after_boundary(self, position: int) -> bool:
        """Check whether the position is newer than the boundary, which took account of earlier
        ones."""
        return self.boundary is None or position > self.boundary.after

    def _show(
        self,
        recorded: RecordedEvent,
        block: AnyBlock,
        turn: int,
        call: int | None = None,
        ends: Ends | None = None,
    ) -> None:
        position = recorded.position
        entry = ViewEntry(
            position,
            block,
            turn,
            recorded.tokens,
            recorded.digest,
            call,
            is_pinned=position in self._was_pinned,
            item=getattr(recorded.event, "item", None),
        )
        shown = self._replacements.get(position)
        trim = self._trims.get(position) or (
            Trim(position=position, head=ends.head, tail=ends.tail) if ends else None
        )
        if shown is None and trim is not None:
            shown = trim_text(block.text, trim)
        if shown is not None:
            tokens = max(1, round(estimate_text(shown) * recorded.ratio))
            entry = replace(entry, shown=shown, tokens=tokens)
        self.entries[position] = entry
        self.tokens += entry.tokens

    def _record_interrupted(self, call: ModelCalled) -> None:
        """Record interrupted calls; of several that saw the same, the last one counts."""
        newest = next(reversed(self.broken_off), None) if self.broken_off else None
        if newest is not None and newest < call.position < self.broken_off[newest]:
            # Blocks after what this call saw are its own answer.
            self.broken_off[newest] = call.position
        if call.stop_reason in INTERRUPTED_STOP_REASONS:
            self.broken_off[call.position] = inf
        else:
            self.broken_off.pop(call.position, None)

    def _record_call_sample(self, call: ModelCalled) -> None:
        is_here = self._sees(call)
        if is_here is None or call.position < self._called:
            return  # unknown, or reported late: a newer call saw more
        later, since = 0, list[ViewEntry]()
        for entry in reversed(self.entries.values()):
            if entry.position > call.position:
                later += entry.tokens
            elif entry.position > self._called >= 0:
                since.append(entry)
            else:
                break
        self.usage_tracker.add_sample(
            CallSample(
                call,
                new_entries=tuple(reversed(since)),
                retracted_entries=tuple(
                    entry
                    for at, entry in self._gone
                    if at <= call.position and entry.position <= self._called
                ),
                visible_tokens=self.tokens - later,
                request=self.request,
                is_whole=self._is_whole(call, since),
                saw_this_view=is_here,
            )
        )
        if self._gone:
            self._gone = [(at, entry) for at, entry in self._gone if at > call.position]
        self._called = call.position

    def _is_whole(self, call: ModelCalled, since: list[ViewEntry]) -> bool:
        """Check whether everything new to a call since the one before is here unchanged."""
        changed = self._trims.keys() | self._replacements
        if self._called < 0 or any(entry.position in changed for entry in since):
            return False
        seen = range(self._called + 1, call.position + 1)
        if any(at > call.position and entry.position in seen for at, entry in self._gone):
            return False
        if self.boundary is None or self._called >= self.boundary.after:
            return True
        decided = Ranges.span(seen.start, min(seen.stop - 1, self.boundary.after))
        return not decided - self.boundary.kept

    def measure_usage(self) -> ContextUsage:
        """Return how much of the context the view uses now."""
        gone = [entry for _, entry in self._gone]
        return self.usage_tracker.measure_usage(tuple(self.entries.values()), self.request, gone)

    @property
    def request(self) -> RequestOverhead:
        """Everything that is sent except the blocks."""
        return RequestOverhead(self.system, self.tools, self.summary.text if self.summary else "")

    def _retract(self, positions: Ranges) -> None:
        self.retracted |= positions
        if not self.undone_at and self.is_summary_undone():
            self.undone_at = self.position
        if len(positions) < len(self.entries):
            gone = [position for position in positions if position in self.entries]
        else:
            gone = [position for position in self.entries if position in positions]
        for position in gone:
            entry = self.entries.pop(position)
            self.tokens -= entry.tokens
            self._gone.append((self.position, entry))
        for position in [p for p in self.open_calls if p in positions]:
            del self.open_calls[position]

    @property
    def is_same_request(self) -> bool:
        """Whether the boundary was recorded for the request that a model is to answer next."""
        return self.boundary is not None and self.answered <= self.effective_from

    def is_summary_undone(self) -> bool:
        """Check whether a summarized block was retracted, or a removed call is open again."""
        if self.summary is None or self.boundary is None:
            return False
        gone = self.summary.covers | self.boundary.hidden
        return bool(self.retracted & self.summary.covers or self.reopened & gone)

    def make_view(
        self, session: str, namespace: str, coordinate: Coordinate, inherited_from: str | None
    ) -> HistoryView:
        return HistoryView(
            session=session,
            namespace=namespace,
            coordinate=coordinate,
            boundary=self.boundary,
            summary=self.summary,
            inherited_from=inherited_from,
            system=self.system,
            tools=self.tools,
            settings=self.settings,
            entries=tuple(self.entries.values()),
            summary_digest=self.summary_digest,
            effective_from=self.effective_from,
        )

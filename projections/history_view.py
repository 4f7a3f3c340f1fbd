"""What a model is sent: summary and kept blocks, folded from a boundary and what follows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from pydantic import JsonValue

from ..domain.blocks import NOT_SENT, AnyBlock, ToolResult
from ..domain.compaction_events import CompactBoundary, Summary, Trim
from ..domain.ranges import Ranges
from ..domain.session_events import (
    BlockAppended,
    BlockPinned,
    BlocksHidden,
    BlocksRetracted,
    BlockUnpinned,
    ModelCalled,
    RequestSettingsSet,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    ToolsSet,
    Usage,
)
from ..domain.token_budget import estimate_text
from .recorded import Recorded

BROKEN_OFF = frozenset({"aborted", "error"})
"""Stop reasons of calls whose reported usage says nothing about the view (S3.5)."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Which view: a position of the session, and a lineage at one of its versions."""

    position: int
    lineage: str
    lineage_version: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One block of a view."""

    position: int
    block: AnyBlock
    """As recorded, whatever is shown of it."""
    turn: int
    tokens: int
    """Estimated size of what is shown."""
    digest: bytes
    call: int | None = None
    """For a tool result: the position of its call."""
    shown: str | None = None
    """Text that is shown instead of the block's own: trimmed, or a hidden block's replacement."""
    is_pinned: bool = False

    @property
    def text(self) -> str:
        """What the view shows of the block's text."""
        return self.block.text if self.shown is None else self.shown


@dataclass(frozen=True)
class HistoryView:
    """A view at one coordinate; the same coordinate gives an equal view for ever."""

    session: str
    namespace: str
    coordinate: Coordinate
    boundary: CompactBoundary | None
    summary: Summary | None
    inherited_from: str | None
    """The lineage that the boundary was decided in, where it is not this one."""
    system: Recorded | None
    tools: Recorded | None
    settings: Recorded | None
    entries: tuple[Entry, ...]
    summary_digest: bytes = b""
    effective_from: int = 0
    """The position from which views begin at the boundary; what stands before it was written by
    a model that saw more."""

    @property
    def system_prompt(self) -> str | None:
        return self.system.event.text if self.system else None  # type: ignore[attr-defined]

    @property
    def tool_definitions(self) -> list[JsonValue]:
        return self.tools.event.tools if self.tools else []  # type: ignore[attr-defined]

    @property
    def request_settings(self) -> dict[str, JsonValue]:
        return self.settings.event.settings if self.settings else {}  # type: ignore[attr-defined]

    @cached_property
    def overhead(self) -> int:
        """Estimated tokens of what is sent besides the blocks."""
        system = estimate_text(self.system_prompt or "")
        tools = estimate_text(str(self.tool_definitions)) if self.tools else 0
        return system + tools + (self.summary.tokens if self.summary else 0)

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of the whole view."""
        return self.overhead + sum(entry.tokens for entry in self.entries)

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of all that is shown, in order; made of the blocks' own digests."""
        digest = blake2b(digest_size=16)
        for part in (self.system, self.tools, self.settings):
            digest.update(b"\x00" if part is None else b"\x01" + part.digest)
        digest.update(self.summary_digest)
        for entry in self.entries:
            digest.update(entry.digest)
            if entry.shown is not None:
                digest.update(b"\x02" + blake2b(encoded(entry.shown), digest_size=16).digest())
        return digest.hexdigest()


def encoded(text: str) -> bytes:
    """UTF-8, lone surrogates included: models do write them."""
    return text.encode("utf-8", "surrogatepass")


def trimmed(text: str, trim: Trim) -> str:
    """The first and last characters of a text around a mark that says how to recall the rest."""
    left_out = len(text) - trim.head - trim.tail
    if left_out <= 0:
        return text
    mark = f"\n[... {left_out:,} characters left out; recall #{trim.position} ...]\n"
    return text[: trim.head] + mark + (text[-trim.tail :] if trim.tail else "")


class History:
    """The fold of one view: begun at a boundary, advanced event by event.

    Live, resumed, replayed and audited views all come from here, so that they cannot differ.
    """

    def __init__(
        self,
        boundary: CompactBoundary | None = None,
        summary: Summary | None = None,
        summary_digest: bytes = b"",
        effective_from: int = 0,
    ) -> None:
        self.effective_from = effective_from
        self.boundary = boundary
        self.summary = summary
        self.summary_digest = summary_digest
        self.position = 0
        self.entries: dict[int, Entry] = {}
        self.open_calls: dict[int, str] = {}
        self.system: Recorded | None = None
        self.tools: Recorded | None = None
        self.settings: Recorded | None = None
        self.pinned = boundary.pinned if boundary else Ranges()
        self.hides: dict[int, str | None] = {}
        self.retracted = Ranges()
        self.last_call: ModelCalled | None = None
        trims = boundary.trims if boundary else ()
        replacements = boundary.replacements if boundary else ()
        self._trims = {trim.position: trim for trim in trims}
        self._replacements = {r.position: r.text for r in replacements}

    def apply_all(self, log: Iterable[Recorded]) -> "History":
        for recorded in log:
            self.apply(recorded)
        return self

    def apply(self, recorded: Recorded) -> None:
        """Advance by one event; the boundary's kept events first, then all that follow it."""
        position = self.position = recorded.position
        match recorded.event:
            case BlockAppended(block=block, turn=turn):
                if block.kind not in NOT_SENT:
                    self._show(recorded, block, turn)
            case ToolCalled(block=block, turn=turn):
                self.open_calls[position] = block.tool_call_id
                self._show(recorded, block, turn)
            case ToolReturned(block=block, turn=turn, call=call):
                self.open_calls.pop(call, None)
                self._show(recorded, block, turn, call)
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
            case ModelCalled(usage=Usage(), stop_reason=reason) as call if reason not in BROKEN_OFF:
                self.last_call = call
            case BlocksRetracted(positions=positions, reopened=reopened):
                if self._is_news(position):
                    self._retract(positions)
                    self.open_calls |= {at: call for call, at in reopened.items()}
            case BlockPinned(positions=positions):
                if self._is_news(position):
                    self.pinned |= positions
            case BlockUnpinned(positions=positions):
                if self._is_news(position):
                    self.pinned -= positions
            case BlocksHidden(positions=positions, replacement=text):
                if self._is_news(position):
                    self.hides |= dict.fromkeys(positions, text)
            case _:
                pass

    def _is_news(self, position: int) -> bool:
        """Whether the boundary was decided before this; else it has taken account of it."""
        return self.boundary is None or position > self.boundary.after

    def _show(
        self, recorded: Recorded, block: AnyBlock, turn: int, call: int | None = None
    ) -> None:
        position = recorded.position
        entry = Entry(position, block, turn, recorded.tokens, recorded.digest, call)
        shown = self._replacements.get(position)
        if shown is None and (trim := self._trims.get(position)):
            shown = trimmed(block.text, trim)
        if shown is not None:
            entry = replace(entry, shown=shown, tokens=max(1, estimate_text(shown)))
        self.entries[position] = entry

    def _retract(self, positions: Ranges) -> None:
        self.retracted |= positions
        for position in [p for p in self.entries if p in positions]:
            del self.entries[position]
        for position in [p for p in self.open_calls if p in positions]:
            del self.open_calls[position]

    def is_undone(self) -> bool:
        """Whether something that the summary stands for was taken back since."""
        return self.summary is not None and bool(self.retracted & self.summary.covers)

    def view(
        self, session: str, namespace: str, coordinate: Coordinate, inherited_from: str | None
    ) -> HistoryView:
        """The view as it stands now."""
        pinned = self.boundary.pinned if self.boundary else Ranges()
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
            entries=tuple(
                replace(entry, is_pinned=True) if entry.position in pinned else entry
                for entry in self.entries.values()
            )
            if pinned
            else tuple(self.entries.values()),
            summary_digest=self.summary_digest,
            effective_from=self.effective_from,
        )

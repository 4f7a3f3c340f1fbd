"""A vector's neutral blocks as a session's events, folded into the window that a policy is shown.

Shapes only: block `n` stands at position `100 * n`, and what comes with it right behind.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from neutral_blocks import Neutral, block_of, images_of, turn_of

from cutbank.domain.blocks import AnyBlock, ToolCall, ToolResult
from cutbank.domain.compaction_events import CompactBoundary, Digest, Summary, Trigger
from cutbank.domain.event import Event
from cutbank.domain.item import Item
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import (
    BlockAppended,
    ModelCalled,
    ToolCalled,
    ToolReturned,
    Usage,
)
from cutbank.domain.token_estimate import estimate_block
from cutbank.domain.window import Window
from cutbank.projections.compaction_window import make_window
from cutbank.projections.history_view import HistoryFold
from cutbank.projections.view_content import Coordinate, RecordedEvent

ENVELOPE: dict[str, Any] = {
    "originator_id": UUID(int=1),
    "originator_version": 1,
    "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
    "subject": "s",
}
ROOM = 100
"""Positions that a neutral block has for itself and for what comes with it."""


class NeutralSession:
    """What was said in a vector, and any view of it."""

    def __init__(self, blocks: list[Neutral]) -> None:
        self.blocks = blocks
        self._ids: list[str] = [block["id"] for block in blocks]

    def position(self, id: str) -> int:
        return ROOM * (self._ids.index(id) + 1)

    def id(self, position: int) -> str:
        """Of the neutral block that a position belongs to."""
        return self._ids[position // ROOM - 1]

    def ids(self, items: Iterable[Item]) -> list[str]:
        return list(dict.fromkeys(self.id(item.position) for item in items))

    def positions(self, ids: Iterable[str]) -> Ranges:
        """All that stands for these blocks."""
        return Ranges((at, at + ROOM - 1) for at in map(self.position, ids))

    @property
    def last_summary(self) -> Neutral | None:
        return next((b for b in reversed(self.blocks) if b["kind"] == "summary"), None)

    def window(
        self,
        limit: int,
        trigger: Trigger = Trigger.MANUAL,
        *,
        behind: Neutral | None = None,
        kept_from: str | None = None,
        among: Callable[[Neutral], bool] = lambda _: True,
    ) -> Window:
        """The view of these blocks, summaries aside.

        `behind` is the summary that stands for what came before it, but for what was kept from
        `kept_from` on; None where nothing left yet.
        """
        begins = after = 0
        history = HistoryFold()
        if behind is not None:
            after = self.position(behind["id"])
            begins = self.position(kept_from) if kept_from else after + 1
            kept = Ranges.span(begins, after)
            history = HistoryFold(
                _boundary(after, min(begins, after + 1), kept),
                _summary(behind, Ranges.span(1, after) - kept),
            )
        seen = [
            block
            for block in self.blocks
            if block["kind"] != "summary" and self.position(block["id"]) >= begins and among(block)
        ]
        log = [recorded for block in seen for recorded in self._events(block)]
        history.apply_all(log)
        head = max(after, log[-1].position if log else 0)
        view = history.make_view("vector", "default", Coordinate(head, "main", 0), None)
        return make_window(history, view, limit, trigger)

    def _events(self, neutral: Neutral) -> list[RecordedEvent]:
        """A block, its images, and after the last of a message the call that it came from."""
        at, turn = self.position(neutral["id"]), turn_of(neutral)
        events = [self._block(block_of(neutral), turn, neutral)]
        events += [BlockAppended(**ENVELOPE, block=one, turn=turn) for one in images_of(neutral)]
        told = [
            RecordedEvent(at + n, event, _tokens(event), event.TOPIC.encode())
            for n, event in enumerate(events)
        ]
        meta, message = neutral["meta"], self._message(neutral)
        if "usage_context" in meta and message[-1] == neutral["id"]:
            called = ModelCalled(
                **ENVELOPE,
                call_id=neutral["id"],
                usage=Usage(input=meta["usage_context"], output=0),
                stop_reason=meta.get("stop_reason"),
                position=self.position(message[0]) - 1,
            )
            told.append(RecordedEvent(at + ROOM - 1, called, 0, b""))
        return told

    def _message(self, neutral: Neutral) -> list[str]:
        """Ids of the blocks that were said at once with this one."""
        group = neutral["meta"].get("group")
        same = [b["id"] for b in self.blocks if group and b["meta"].get("group") == group]
        return same or [neutral["id"]]

    def _block(self, block: AnyBlock, turn: int, neutral: Neutral) -> Event:
        if isinstance(block, ToolCall):
            return ToolCalled(**ENVELOPE, block=block, turn=turn)
        if isinstance(block, ToolResult):
            return ToolReturned(**ENVELOPE, block=block, turn=turn, call=self._call(neutral))
        return BlockAppended(**ENVELOPE, block=block, turn=turn)

    def _call(self, result: Neutral) -> int:
        """Where the call stands that a result answers; 1, where no block is, for an orphan."""
        before = self.blocks[: self._ids.index(result["id"])]
        name = result["tool_call_id"]
        calls = (b for b in reversed(before) if b["kind"] == "tool_call")
        return next((self.position(b["id"]) for b in calls if b["tool_call_id"] == name), 1)


def _tokens(event: Event) -> int:
    block: AnyBlock = event.block  # type: ignore[attr-defined]
    return estimate_block(block)


def _boundary(after: int, first_kept: int, kept: Ranges) -> CompactBoundary:
    return CompactBoundary(
        **ENVELOPE,
        after=after,
        first_kept=first_kept,
        kept=kept,
        trigger=Trigger.MANUAL,
        policy="recorded",
        pre_tokens=1,
        post_tokens=1,
    )


def _summary(block: Neutral, covers: Ranges) -> Summary:
    files = block["meta"].get("details") or {}
    return Summary(
        **ENVELOPE,
        boundary=1,
        text=block["text"],
        digest=Digest(
            read_files=tuple(files.get("read_files", ())),
            modified_files=tuple(files.get("modified_files", ())),
        ),
        covers=covers,
        summarizer="recorded",
        tokens=max(1, len(block["text"]) // 4),
    )

"""Views for tests, folded from events as a store would read them."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from made_events import ENVELOPE, make_boundary, make_summary

from cutbank.domain.blocks import AnyBlock, Block, Native, ToolCall, ToolResult
from cutbank.domain.compaction_events import Replacement, Trim
from cutbank.domain.event import Event
from cutbank.domain.ranges import Ranges
from cutbank.domain.session_events import (
    BlockAppended,
    RequestSettingsSet,
    SystemPromptSet,
    ToolCallAbandoned,
    ToolCalled,
    ToolReturned,
    ToolsSet,
)
from cutbank.domain.token_estimate import estimate_block
from cutbank.projections.history_view import HistoryFold, HistoryView
from cutbank.projections.view_content import Coordinate, RecordedEvent


class Talk:
    """A session that is told what happens, block by block, and shows what a model would see."""

    def __init__(self, *blocks: AnyBlock) -> None:
        self.log: list[RecordedEvent] = []
        self.open_calls: dict[str, int] = {}
        for block in blocks:
            self.say(block)

    @property
    def position(self) -> int:
        return len(self.log)

    def say(self, block: AnyBlock) -> int:
        """Record a block; a result answers the open call of its id."""
        if isinstance(block, ToolCall):
            self.open_calls[block.tool_call_id] = self.position + 1
            return self._record(ToolCalled, block=block, turn=1)
        if isinstance(block, ToolResult):
            call = self.open_calls.pop(block.tool_call_id)
            return self._record(ToolReturned, block=block, turn=1, call=call)
        return self._record(BlockAppended, block=block, turn=1)

    def abandon(self, tool_call_id: str) -> int:
        call = self.open_calls.pop(tool_call_id)
        more = {"tool_call_id": tool_call_id, "reason": "interrupted"}
        return self._record(ToolCallAbandoned, turn=1, call=call, **more)

    def system(self, text: str) -> int:
        return self._record(SystemPromptSet, text=text)

    def tools(self, *tools: Any) -> int:
        return self._record(ToolsSet, tools=list(tools))

    def settings(self, **settings: Any) -> int:
        return self._record(RequestSettingsSet, settings=settings)

    def view(self) -> HistoryView:
        return _view(HistoryFold(), self.log)

    def compacted(
        self,
        after: int,
        kept: Iterable[int],
        *,
        pinned: Iterable[int] = (),
        trims: Iterable[Trim] = (),
        replaced: Iterable[Replacement] = (),
        summary: str | None = "What came before.",
    ) -> HistoryView:
        """What is seen from a boundary on that keeps these positions of those up to `after`."""
        keeps = Ranges.of(kept)
        boundary = make_boundary(
            after,
            keeps,
            originator_version=2,
            pinned=Ranges.of(pinned),
            trims=tuple(trims),
            replacements=tuple(replaced),
        )
        said = summary and make_summary(
            summary, Ranges.span(1, after) - keeps, originator_version=3, boundary=2
        )
        blocks = (BlockAppended, ToolCalled, ToolReturned, ToolCallAbandoned)
        seen = [
            recorded
            for recorded in self.log
            if recorded.position > after
            or recorded.position in keeps
            or not isinstance(recorded.event, blocks)
        ]
        return _view(HistoryFold(boundary, said or None, b"summary" if said else b""), seen)

    def _record(self, kind: type[Event], **fields: Any) -> int:
        position = self.position + 1
        event = kind(**{**ENVELOPE, "originator_version": position, **fields})
        stored = repr(event).encode("utf-8", "surrogatepass")
        digest = blake2b(stored, digest_size=16).digest()
        tokens = estimate_block(fields["block"]) if "block" in fields else 0
        self.log.append(RecordedEvent(position, event, tokens, digest))
        return position


def _view(history: HistoryFold, log: Iterable[RecordedEvent]) -> HistoryView:
    history.apply_all(log)
    at = Coordinate(history.position, "main", 0)
    return history.make_view("a session", "default", at, None)


def thought(text: str, signature: str = "c2lnbmVk", **more: Any) -> Block:
    item = f'{{"type": "thinking", "thinking": "{text}", "signature": "{signature}"}}'
    return Block.thinking(text, native=Native(provider="anthropic", item=item), **more)


def reasoning(name: str, **more: Any) -> Block:
    """Reasoning as the Responses API gives it, encrypted."""
    item = f'{{"type": "reasoning", "id": "{name}", "summary": [], "encrypted_content": "x"}}'
    return Block.thinking("", native=Native(provider="openai-responses", item=item), **more)

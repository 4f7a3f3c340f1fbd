"""Answers as tunacode did, first and later: messages are measured by their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...blocks import AnyBlock, BlockKind, ToolCall, ToolResult
from ...item import WindowItem, iter_message_spans_back
from ...summaries.templates import list_text_parts
from ...token_estimate import CHARS_PER_TOKEN
from ...window import Window
from ..policy import quirk
from ..retention_window import RetentionWindow


@dataclass(frozen=True)
class TunacodeAsShipped(RetentionWindow):
    """A forced compaction cuts where an automatic one would."""

    splits_runs: ClassVar[bool] = False

    preset: str = quirk("as_shipped")

    def fires(self, window: Window) -> bool:
        threshold = self.compute_threshold(window.limit)
        return window.limit > 0 and self._find_reached(window.items, threshold + 1) is not None

    def find_budget_index(self, window: Window) -> int:
        return self._find_reached(window.open_to_cut, self.keep_recent_tokens) or 0

    def find_cut(self, window: Window, meant: int) -> int:
        return self.snap_back(window.open_to_cut, meant)

    def count_tokens(self, message: Sequence[WindowItem]) -> int:
        return sum([_measure_block(item.block) for item in message]) // CHARS_PER_TOKEN

    def _find_reached(self, items: Sequence[WindowItem], tokens: int) -> int | None:
        """Return where the newest message begins from which on there are so many tokens."""
        for start, end in iter_message_spans_back(items):
            tokens -= self.count_tokens(items[start:end])
            if tokens <= 0:
                return start
        return None


@dataclass(frozen=True)
class TunacodeLater(TunacodeAsShipped):
    """A forced compaction cuts at the newest place, which may be after unfinished words."""

    preset: str = quirk("later")

    def find_cut(self, window: Window, meant: int) -> int:
        items = window.open_to_cut
        return self.snap_back(items, meant if window.trigger.is_automatic else len(items))

    def is_finished(self, message: Sequence[WindowItem]) -> bool:
        return super().is_finished(message) or _is_text_only(message)


def _is_text_only(message: Sequence[WindowItem]) -> bool:
    kinds = {item.kind for item in message}
    if BlockKind.TOOL_CALL in kinds:
        return False
    return any(item.kind is BlockKind.ASSISTANT and item.block.text.strip() for item in message)


def _measure_block(block: AnyBlock) -> int:
    """Return the characters of a block; a call's arguments are as Python prints them."""
    # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
    if type(block) is ToolCall:
        arguments = str(block.parse_arguments())
        return len(block.tool_call_id) + len(block.name) + len(arguments)
    parts = list_text_parts(block)
    gaps = max(0, len(parts) - 1) if type(block) is ToolResult else 0
    return sum(map(len, parts)) + gaps

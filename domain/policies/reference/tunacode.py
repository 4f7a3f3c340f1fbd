"""Answers as tunacode did, first and later: messages are measured by their texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...blocks import BlockKind, Media, ToolCall
from ...counting.estimators import TUNACODE_ESTIMATOR
from ...item import WindowItem
from ...messages import iter_message_spans_back
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
        return _ESTIMATOR.count_message([item.block for item in message])

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


def _read_python_call(call: ToolCall) -> tuple[str, str, str]:
    """Return the texts of a call that count: the arguments as Python prints them."""
    return call.tool_call_id, call.name, str(call.parse_arguments())


def _describe_media(media: Media) -> str:
    """Return the text that an image or document counts as: its address, or a placeholder."""
    return media.url or f"[{media.type}]"


_ESTIMATOR = replace(
    TUNACODE_ESTIMATOR, read_call=_read_python_call, describe_media=_describe_media
)

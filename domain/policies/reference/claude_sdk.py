"""Answers as goat did: measured in bytes, with cuts that step back from results and calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...blocks import AnyBlock, BlockKind, Text, ToolCall, ToolResult
from ...item import WindowItem, find_message_end, find_message_start, iter_message_spans_back
from ...summaries.templates import ClaudeSdkTemplate
from ...token_estimate import CHARS_PER_TOKEN, count_bytes, count_fitting_chars
from ...window import Window
from ..policy import quirk
from ..preserve_zone import PRUNED_CHARACTERS, PreserveZone

MESSAGE_TOKENS = 4
"""Tokens of each message in addition to its texts."""


@dataclass(frozen=True)
class GoatAsShipped(PreserveZone):
    template: ClassVar[ClaudeSdkTemplate] = ClaudeSdkTemplate(shows_calls=False)
    prune_gain: ClassVar[float] = 0.0

    preset: str = quirk("as_shipped")

    @property
    def fires_by_tokens(self) -> bool:
        return False

    def count_in_use(self, window: Window) -> int:
        return self.count_system_tokens(window) + self.count_message_tokens(window)

    def count_system_tokens(self, window: Window) -> int:
        return _count_text(window.system_prompt)

    def count_message_tokens(self, window: Window) -> int:
        """Return the tokens of all messages; the summary counts as one."""
        standing = 0
        if window.summary is not None:
            standing = _count_text(window.summary.text) + MESSAGE_TOKENS
        return standing + sum(tokens for _, tokens in self._measure_messages(window))

    def _measure_messages(self, window: Window) -> list[tuple[int, int]]:
        """Return the start and the tokens of each message, the newest first."""

        def measure() -> list[tuple[int, int]]:
            spans = iter_message_spans_back(window.items)
            return [(start, count_goat_tokens(window.items[start:end])) for start, end in spans]

        return window.find_once(type(self).__name__, measure)

    def find_split(self, window: Window) -> int:
        """Return the index of the first item to keep; the newest message always stays."""
        items, split = window.open_to_cut, super().find_split(window)
        if split >= len(items) > 0:
            # Nothing of a single message may leave: the floor stays at its end.
            split = max(find_message_start(items, len(items) - 1), find_message_end(items, 0))
        return step_back(items, split)

    def find_exceeding_item(self, window: Window) -> int | None:
        zone = self.compute_preserve_budget(window.limit)
        carried = len(window.items) - len(window.open_to_cut)
        for start, tokens in self._measure_messages(window):
            zone -= tokens
            if start < carried:
                break
            if zone < 0:
                return start - carried
        return None

    def fit_head(self, text: str, most: int) -> int | None:
        """Return how many whole characters fit into the bytes that are shown."""
        return count_fitting_chars(text, PRUNED_CHARACTERS) if count_bytes(text) > most else None


def _count_text(text: str) -> int:
    return count_bytes(text) // CHARS_PER_TOKEN


def count_goat_tokens(message: Sequence[WindowItem]) -> int:
    """Return the tokens of a message; neither calls nor thinking nor images count."""
    size = sum([_measure_block(item.block) for item in message])
    return size // CHARS_PER_TOKEN + MESSAGE_TOKENS


def _measure_block(block: AnyBlock) -> int:
    # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
    if type(block) is ToolCall or block.kind is BlockKind.THINKING:
        return 0
    if type(block) is ToolResult and not isinstance(block.content, str):
        return sum([count_bytes(part.text) for part in block.content if isinstance(part, Text)])
    return count_bytes(block.text)


def step_back(items: Sequence[WindowItem], index: int) -> int:
    """Return where the original moves a cut: off results, and off a message with calls.

    It stops at the second message, and may end at the result of an earlier call.
    """
    if index <= 0 or index >= len(items):
        return index
    floor = find_message_end(items, 0)
    while index > floor and items[index].kind is BlockKind.TOOL_RESULT:
        index = find_message_start(items, index - 1)
    message = items[index : find_message_end(items, index)]
    if index > floor and any(item.kind is BlockKind.TOOL_CALL for item in message):
        index = find_message_start(items, index - 1)
    return max(index, floor)

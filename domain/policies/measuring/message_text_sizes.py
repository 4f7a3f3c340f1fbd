"""Measures messages by their texts alone: tool calls, thinking and images count nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...blocks import AnyBlock, Kind, Text, ToolCall, ToolResult
from ...item import Item
from ...messages import find_role
from .text_measure import TextMeasure


@dataclass(frozen=True, slots=True)
class MessageSize:
    start: int
    """The index of its first item."""
    tokens: int


@dataclass(frozen=True, slots=True)
class MessageTextSizes:
    """The simple estimator of seed 004."""

    measure: TextMeasure
    tokens_per_message: int
    """Tokens that each message takes in addition to its text."""

    def measure_messages(self, items: Sequence[Item]) -> list[MessageSize]:
        """Return all messages in order, each measured as a whole."""
        starts, lengths = list[int](), list[int]()
        for index, item in enumerate(items):
            if index and _is_message_continued(items[index - 1], item):
                lengths[-1] += self.measure_block(item.block)
            else:
                starts.append(index)
                lengths.append(self.measure_block(item.block))
        tokens_of, besides = self.measure.convert_to_tokens, self.tokens_per_message
        return [
            MessageSize(start, tokens_of(length) + besides)
            for start, length in zip(starts, lengths, strict=True)
        ]

    def count_text_tokens(self, blocks: Iterable[AnyBlock]) -> int:
        return self.measure.convert_to_tokens(sum(map(self.measure_block, blocks)))

    def measure_block(self, block: AnyBlock) -> int:
        """Return the length of a block in the unit of the measure."""
        if isinstance(block, ToolCall) or block.kind is Kind.THINKING:
            return 0
        if isinstance(block, ToolResult) and not isinstance(block.content, str):
            texts = (part.text for part in block.content if isinstance(part, Text))
            return sum(map(self.measure.measure_length, texts))
        return self.measure.measure_length(block.text)


def _is_message_continued(before: Item, item: Item) -> bool:
    name = item.block.message_id
    return (
        name is not None
        and name == before.block.message_id
        and not isinstance(item.block, ToolResult)
        and find_role(item) is find_role(before)
    )

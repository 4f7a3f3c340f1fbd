"""Messages by the length of what is said in them: tool calls, thoughts and images weigh nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...blocks import AnyBlock, Kind, Text, ToolCall, ToolResult
from ...item import Item
from ...messages import role_of
from .measure import Measure


@dataclass(frozen=True, slots=True)
class Sized:
    """One message."""

    start: int
    """Where its first item stands among all."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """Seed 004's simple estimator."""

    measure: Measure
    besides: int
    """Tokens that each message takes besides what it says."""

    def sizes(self, items: Sequence[Item]) -> list[Sized]:
        """All messages in order, each measured as a whole."""
        starts, lengths = list[int](), list[int]()
        for index, item in enumerate(items):
            if index and _goes_on(items[index - 1], item):
                lengths[-1] += self.length(item.block)
            else:
                starts.append(index)
                lengths.append(self.length(item.block))
        tokens_of, besides = self.measure.tokens_of, self.besides
        return [
            Sized(start, tokens_of(length) + besides)
            for start, length in zip(starts, lengths, strict=True)
        ]

    def text(self, blocks: Iterable[AnyBlock]) -> int:
        """Tokens of what one message says."""
        return self.measure.tokens_of(sum(map(self.length, blocks)))

    def length(self, block: AnyBlock) -> int:
        """In the unit of the measure."""
        if isinstance(block, ToolCall) or block.kind is Kind.THINKING:
            return 0
        if isinstance(block, ToolResult) and not isinstance(block.content, str):
            texts = (part.text for part in block.content if isinstance(part, Text))
            return sum(map(self.measure.length, texts))
        return self.measure.length(block.text)


def _goes_on(before: Item, item: Item) -> bool:
    """Whether an item is a further piece of the message before it."""
    name = item.block.message_id
    return (
        name is not None
        and name == before.block.message_id
        and not isinstance(item.block, ToolResult)
        and role_of(item) is role_of(before)
    )

"""How much is in use as pi reckons it: the newest call's report, and lengths of what follows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import ASSISTANT_KINDS, AnyBlock, Block, Kind, Text, ToolCall
from ...item import Item
from .text_measure import TextMeasure


@dataclass(frozen=True, slots=True)
class PiContextEstimate:
    """Tokens in use, and where they are known from."""

    since: int
    """Estimated of what came after the report; of everything where there is none."""
    reported: int = 0
    """By the newest call, its answer included where that was reported."""
    answered: int | None = None
    """Position of the last block that the report speaks of."""

    @property
    def tokens(self) -> int:
        return self.reported + self.since


def measure_pi_block(block: AnyBlock, measure: TextMeasure, image_chars: int) -> int:
    """Length of what counts of a block: images do in results and reminders, not in prompts."""
    if isinstance(block, ToolCall):
        return measure.measure_length(block.name) + measure.measure_length(_dump_compact(block))
    if isinstance(block, Block):
        images = block.media is not None and block.kind is Kind.DEVELOPER
        return measure.measure_length(block.text) + image_chars * images
    if isinstance(block.content, str):
        return measure.measure_length(block.content)
    texts = sum(
        measure.measure_length(part.text) for part in block.content if isinstance(part, Text)
    )
    return texts + image_chars * len(block.media)


def _dump_compact(call: ToolCall) -> str:
    """A call's arguments as JSON without a space that need not be."""
    if " " not in call.arguments and "\\" not in call.arguments and "\n" not in call.arguments:
        return call.arguments
    return _COMPACT.encode(call.parse_arguments())


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def find_answer_end(items: Sequence[Item], index: int) -> int:
    """Where the model's message ends that begins at an index; the index if none begins there."""
    if index == len(items) or items[index].kind not in ASSISTANT_KINDS:
        return index
    name, end = items[index].block.message_id, index + 1
    while (
        name is not None
        and end < len(items)
        and items[end].block.message_id == name
        and items[end].kind in ASSISTANT_KINDS
    ):
        end += 1
    return end

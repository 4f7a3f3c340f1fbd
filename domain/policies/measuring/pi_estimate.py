"""Estimates the tokens in use as pi does: the newest report, and the length of what follows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...blocks import ASSISTANT_KINDS, AnyBlock, Block, Kind, Text, ToolCall
from ...item import Item
from .text_measure import TextMeasure


@dataclass(frozen=True, slots=True)
class PiContextEstimate:
    """Tokens in use, reported and estimated."""

    since: int
    """The estimate for what came after the report, or for everything if there is no report."""
    reported: int = 0
    """The newest call's prompt, and its answer if that was reported."""
    answered: int | None = None
    """Position of the last block that the report includes."""

    @property
    def tokens(self) -> int:
        return self.reported + self.since


def measure_pi_block(block: AnyBlock, measure: TextMeasure, image_chars: int) -> int:
    """Return the counted length of a block; images count in results and reminders only."""
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
    if " " not in call.arguments and "\\" not in call.arguments and "\n" not in call.arguments:
        return call.arguments
    return _COMPACT.encode(call.parse_arguments())


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def find_answer_end(items: Sequence[Item], index: int) -> int:
    """Return the end of the model's message that begins at an index, or the index itself."""
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

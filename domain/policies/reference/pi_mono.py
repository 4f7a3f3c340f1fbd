"""Answers as pi-mono did: measured in UTF-16 units, and cut only behind the last boundary."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...blocks import ASSISTANT_KINDS, AnyBlock, Block, BlockKind, ToolCall
from ...item import (
    Role,
    WindowItem,
    find_message_end,
    find_role,
    get_place,
    iter_message_spans_back,
)
from ...summaries.templates import PiTemplate
from ...token_estimate import CHARS_PER_TOKEN, iter_pieces
from ...window import Window
from ..pi import Pi
from ..policy import quirk

_IMAGE_UNITS = 4_800
_IMAGE_KINDS = frozenset({BlockKind.TOOL_RESULT, BlockKind.DEVELOPER})
"""Kinds of blocks in which an image counts."""
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class PiUsage(NamedTuple):
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


@dataclass(frozen=True)
class PiAsShipped(Pi):
    fires_by_tokens: ClassVar[bool] = False
    fits_limit: ClassVar[bool] = False
    template: ClassVar[PiTemplate] = PiTemplate(keeps_previous=False)

    preset: str = quirk("as_shipped")

    def list_open_items(self, window: Window) -> Sequence[WindowItem]:
        """Return the items behind the last boundary: what it kept stays."""
        items, boundary = window.open_to_cut, window.boundary
        return (
            items
            if boundary is None
            else items[bisect_right(items, boundary.after, key=get_place) :]
        )

    def find_budget_index(self, window: Window, keep: int) -> int | None:
        items = self.list_open_items(window)
        for start, end in iter_message_spans_back(items):
            tokens = self.count_message_tokens(items[start:end])
            if tokens is not None:
                keep -= tokens
                if keep <= 0:
                    return start
        return None

    def count_message_tokens(self, pieces: Sequence[WindowItem]) -> int | None:
        """Return the tokens of a message as the walk counts it; None for one that it skips."""
        return None if find_role(pieces[0]) in {None, Role.DEVELOPER} else _count_tokens(pieces)

    def count_in_use(self, window: Window) -> int:
        return self.measure_items(window, window.items).tokens

    def measure_items(self, window: Window, items: Sequence[WindowItem]) -> PiUsage:
        """Return the newest report after the last boundary, and an estimate of later items."""
        call, since = window.last_call, window.boundary.after if window.boundary else 0
        if call is None or call.context is None or call.position <= since:
            summary = window.summary.text if window.summary else ""
            return PiUsage(_divide(_count_units(summary)) + _sum_tokens(items))
        end = bisect_right(items, call.position, key=get_place)
        output = call.usage.output if call.usage else None
        if output is not None and end < len(items) and items[end].kind in ASSISTANT_KINDS:
            end = find_message_end(items, end)
        answered = items[end - 1].position if end else None
        return PiUsage(_sum_tokens(items[end:]), call.context + (output or 0), answered)


def _count_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _divide(units: int) -> int:
    return -(-units // CHARS_PER_TOKEN)


def _count_tokens(pieces: Sequence[WindowItem]) -> int:
    return _divide(sum([_measure_block(piece.block) for piece in pieces]))


def _measure_block(block: AnyBlock) -> int:
    """Return the units of a block; a call's arguments are as JavaScript prints them."""
    # Exact types, because pydantic makes `isinstance` slow wherever the answer is no.
    if type(block) is ToolCall:
        arguments = block.arguments
        if " " in arguments or "\\" in arguments or "\n" in arguments:
            arguments = _COMPACT.encode(block.parse_arguments())
        return _count_units(block.name) + _count_units(arguments)
    if type(block) is Block and block.media is None:
        return _count_units(block.text)
    image = _IMAGE_UNITS if block.kind in _IMAGE_KINDS else 0
    pieces = iter_pieces(block)
    return sum([_count_units(one) if isinstance(one, str) else image for one in pieces])


def _sum_tokens(items: Sequence[WindowItem]) -> int:
    return sum(_count_tokens(items[begin:end]) for begin, end in iter_message_spans_back(items))
